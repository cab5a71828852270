"""A client whose every request is counted in the budget of the run: the probe's, which go past the bench.

Rules it keeps: what a request may cost is taken before it is sent; one that the budget does not hold is not
sent, and BudgetSpent goes up. A look beside the API (the list of models, say) is a request without tokens.
"""

import asyncio
from collections.abc import Mapping

from kvfence.check.asks import Ask
from kvfence.check.budget import Budget
from kvfence.check.client import CONNECT_S_MAX, Manner, ProbingClient
from kvfence.check.reply import Reply
from kvfence.check.target import Address
from kvfence.check.tokens import by_bytes


class Counted:
    """A ProbingClient that asks through another one, and counts."""

    def __init__(self, client: ProbingClient, budget: Budget, *, began_s: float) -> None:
        """`began_s` is when the run began, on the loop's clock."""
        self._client = client
        self._budget = budget
        self._began_s = began_s
        self._counter = by_bytes()

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants."""
        return self._client.tenants

    @property
    def address(self) -> Address:
        """Where the target is."""
        return self._client.address

    @property
    def manner(self) -> Manner:
        """How asks are put now."""
        return self._client.manner

    def adopt(self, manner: Manner) -> None:
        """Put all further asks like this."""
        self._client.adopt(manner)

    def body_of(self, tenant: str, ask: Ask) -> Mapping[str, object]:
        """Return the body that an ask would have."""
        return self._client.body_of(tenant, ask)

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        """Count one request, send it, and correct the count by what the server says."""
        tokens = ask.prompt_tokens
        if tokens is None:
            tokens = len(ask.prompt) if isinstance(ask.prompt, tuple) else self._counter.count(ask.prompt)
        estimate = self._budget.take(ask, tokens, at_s=self._at_s)
        reply = await self._client.ask(tenant, ask)
        self._budget.settle(estimate, reply)
        return reply

    async def fetch(
        self, tenant: str, url: str, body: object = None, *, timeout_s: float = CONNECT_S_MAX
    ) -> Reply:
        """Count a look beside the API, and take it."""
        self._budget.take_look(at_s=self._at_s)
        return await self._client.fetch(tenant, url, body, timeout_s=timeout_s)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    @property
    def _at_s(self) -> float:
        return asyncio.get_running_loop().time() - self._began_s
