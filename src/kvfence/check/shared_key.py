"""Two tenants' names over one key: what a run does when it has only one credential.

Rules it keeps: the second name is sent with the first one's credential, and the report says that they ran as
one. A scenario that cannot do without two tenants needs Need.TWO_TENANTS, which such a run does not have.
"""

from kvfence.check.asks import Ask
from kvfence.check.client import Client
from kvfence.check.reply import Reply

SAID = (
    "there is one credential: scenarios with two tenants ran as one, and see what crosses requests, not keys"
)


class SharedKey:
    """A Client with a second name for its only tenant."""

    def __init__(self, client: Client) -> None:
        self._client = client
        first = client.tenants[0]
        self._tenants = (first, f"{first}-again")

    @property
    def tenants(self) -> tuple[str, ...]:
        """The tenant, and its second name."""
        return self._tenants

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        """Send it with the one credential there is."""
        known = tenant in self._tenants
        return await self._client.ask(self._tenants[0] if known else tenant, ask)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()


def with_two_names(client: Client) -> Client:
    """The client itself if it has two tenants."""
    return client if len(client.tenants) > 1 else SharedKey(client)
