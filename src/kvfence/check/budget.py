"""The budget of a run: requests, tokens, bytes, seconds and money, counted before a request is sent.

Rules it keeps:
- What a request may cost is taken when it is sent and corrected when it is over; what the server says it used
  counts where that is more.
- A request that would pass a limit is not sent. The limit is never passed by more than what the requests in
  flight turned out to cost above their estimate.
"""

from dataclasses import dataclass, fields
from typing import Any

from kvfence.check.asks import Ask
from kvfence.check.reply import Reply
from kvfence.check.stops import BudgetSpent
from kvfence.report import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Money for a million tokens, in whatever currency the user thinks in."""

    prompt: float
    completion: float

    def of(self, cost: Cost) -> float:
        """Money for so many tokens."""
        return (cost.prompt_tokens * self.prompt + cost.completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use. None: no limit. `money` wants a price."""

    requests: int | None = None
    tokens: int | None = None
    bytes: int | None = None
    seconds: float | None = None
    money: float | None = None

    def over(self, other: "Limits") -> "Limits":
        """Return these limits, and where they say nothing, the other ones."""
        return Limits(**{**other.told, **self.told})

    @property
    def told(self) -> dict[str, Any]:
        """Those that are there, by name."""
        return {one.name: value for one in fields(Limits) if (value := getattr(self, one.name)) is not None}


class Budget:
    """What is left of a run's limits."""

    def __init__(self, limits: Limits, price: Price | None = None, *, used: Cost | None = None) -> None:
        self.limits = limits
        self.price = price
        self.used = used or Cost()
        self.bytes = 0

    def take(self, ask: Ask, prompt_tokens: int, *, at_s: float) -> Cost:
        """Count a request that is about to be sent. Raises BudgetSpent, with nothing counted."""
        # Whoever hangs up after a few chunks is not sent the rest, however much was asked for.
        most = min(ask.max_tokens or 0, ask.hang_up_after_chunks or ask.max_tokens or 0)
        estimate = Cost(requests=1, prompt_tokens=prompt_tokens, completion_tokens=most * ask.n)
        self._take(estimate, at_s)
        return estimate

    def take_look(self, *, at_s: float) -> None:
        """Count a request without tokens, such as one for the list of models. Raises BudgetSpent."""
        self._take(Cost(requests=1), at_s)

    def _take(self, cost: Cost, at_s: float) -> None:
        spent = self._first_spent(self.used + cost, at_s)
        if spent is not None:
            raise BudgetSpent(spent)
        self.used += cost

    def settle(self, estimate: Cost, reply: Reply) -> Cost:
        """Correct what was taken by what the server says was used; return that."""
        usage = reply.usage
        actual = Cost(
            requests=1,
            prompt_tokens=max(usage.prompt_tokens or 0, estimate.prompt_tokens),
            completion_tokens=estimate.completion_tokens
            if usage.completion_tokens is None
            else usage.completion_tokens,
        )
        self.used = Cost(
            requests=self.used.requests,
            prompt_tokens=self.used.prompt_tokens + actual.prompt_tokens - estimate.prompt_tokens,
            completion_tokens=self.used.completion_tokens
            + actual.completion_tokens
            - estimate.completion_tokens,
        )
        self.bytes += reply.bytes_read
        return actual

    def _first_spent(self, wanted: Cost, at_s: float) -> str | None:
        limits = self.limits
        tokens = wanted.prompt_tokens + wanted.completion_tokens
        money = None if self.price is None else self.price.of(wanted)
        pairs = (
            ("requests", wanted.requests, limits.requests),
            ("tokens", tokens, limits.tokens),
            ("bytes", self.bytes, limits.bytes),
            ("seconds", at_s, limits.seconds),
            ("money", money, limits.money),
        )
        for name, value, limit in pairs:
            if limit is not None and value is not None and value > limit:
                return f"the budget of {limit:g} {name} does not hold the next request ({value:g})"
        return None
