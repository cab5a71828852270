"""What one tenant may have in flight: requests and tokens.

Rules it keeps:
- A request counts from before its body is read until its answer is over, however it ends.
- A choice counts as a request. Its tokens are the prompt's and `max_tokens`; without `max_tokens`, the
  prompt's and each one that is made.
- What can never be admitted is a 400; what cannot be admitted now is a 429 with Retry-After.
- Nothing is kept for a tenant that has nothing in flight, so the table is bounded by what is in flight.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kvfence.serving.errors import ApiError, too_many

CONTEXTS_IN_FLIGHT = 4  # tokens in flight a tenant, where nothing else is set: so many times the limit


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """Bounds of each tenant. `tokens_max` None: `CONTEXTS_IN_FLIGHT` times what one request may have."""

    requests_max: int = 64
    tokens_max: int | None = None


@dataclass(slots=True)
class _InFlight:
    requests: int = 0
    tokens: int = 0


class Admission:
    """One HTTP request's share of its tenant's limits. Given back when the context of `enter` ends."""

    def __init__(self, limits: TenantLimits, used: _InFlight) -> None:
        self._limits = limits
        self._used = used
        self.requests = 0
        self.tokens = 0

    def take(self, *, requests: int = 0, tokens: int = 0, limit_tokens: int | None = None) -> None:
        """Count more requests and tokens, or raise ApiError (400, 429) and count none.

        `limit_tokens` is what one request may have; None while it is not known.
        """
        tokens_max = self._tokens_max(limit_tokens)
        _check_possible("n", "choices", self.requests + requests, self._limits.requests_max)
        if tokens_max is not None:
            _check_possible("max_tokens", "tokens", self.tokens + tokens, tokens_max)
            if tokens and self._used.tokens + tokens > tokens_max:
                raise too_many(
                    f"This tenant has {self._used.tokens} tokens in flight; {tokens} more would pass the "
                    f"{tokens_max} that it may have. Wait for an answer to end."
                )
        if requests and self._used.requests + requests > self._limits.requests_max:
            raise too_many(
                f"This tenant has {self._used.requests} requests in flight and may have "
                f"{self._limits.requests_max}. Wait for an answer to end."
            )
        self._add(requests, tokens)

    def count_token(self) -> None:
        """Count a token that was made without having been taken before. Never refused."""
        self._add(0, 1)

    def _tokens_max(self, limit_tokens: int | None) -> int | None:
        if self._limits.tokens_max is not None:
            return self._limits.tokens_max
        return None if limit_tokens is None else CONTEXTS_IN_FLIGHT * limit_tokens

    def _add(self, requests: int, tokens: int) -> None:
        self.requests += requests
        self.tokens += tokens
        self._used.requests += requests
        self._used.tokens += tokens

    def give_back(self) -> None:
        """Return everything that was taken."""
        self._add(-self.requests, -self.tokens)


class Limiter:
    """What every tenant has in flight."""

    def __init__(self, limits: TenantLimits) -> None:
        """Start with nothing in flight."""
        self._limits = limits
        self._in_flight: dict[str, _InFlight] = {}

    @contextmanager
    def enter(self, tenant: str) -> Iterator[Admission]:
        """Count one request of the tenant for as long as the context lasts. Raises ApiError (429)."""
        admission = Admission(self._limits, self._in_flight.setdefault(tenant, _InFlight()))
        try:
            admission.take(requests=1)
            yield admission
        finally:
            admission.give_back()
            if self._in_flight[tenant].requests == 0:
                del self._in_flight[tenant]

    def in_flight(self, tenant: str) -> tuple[int, int]:
        """Return the requests and tokens that a tenant has in flight."""
        used = self._in_flight.get(tenant, _InFlight())
        return used.requests, used.tokens


def _check_possible(param: str, what: str, wanted: int, most: int) -> None:
    if wanted > most:
        raise ApiError(
            400,
            f"The request asks for {wanted} {what}; a tenant may have {most} in flight, so it can never be "
            f"served. Lower `{param}` or `n`, or send less at once.",
            param=param,
            code="tenant_limit_exceeded",
        )
