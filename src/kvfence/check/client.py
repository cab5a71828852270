"""How a request reaches a server: the interface that everything in `check` asks through.

Rules it keeps:
- One ask is one request. Nothing is sent twice, no redirect is followed, and whatever the server or the
  network did is a Reply, never an exception.
- Times are those of the running event loop.
"""

from typing import Protocol

from kvfence.check.asks import Ask
from kvfence.check.reply import Reply


class Client(Protocol):
    """What sends. A wrapper that counts, records or replays has the same methods."""

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants, in the profile's order; there is at least one."""

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        """Send one request and read its answer to the end, or to where the Ask hangs up.

        Cancelling the task closes the connection before CancelledError goes up. Raises OperatorError where
        no credential can be had (a token command that fails).
        """

    async def aclose(self) -> None:
        """Close every connection."""
