"""Two names over one key."""

from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.reply import Reply
from kvfence.check.shared_key import with_two_names


class Client:
    def __init__(self, *tenants: str) -> None:
        self.tenants = tenants
        self.asked: list[str] = []
        self.is_closed = False

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        self.asked.append(tenant)
        return Reply(status=200)

    async def aclose(self) -> None:
        self.is_closed = True


def test_the_second_name_goes_out_with_the_first_ones_key():
    client = Client("anna")
    two = with_two_names(client)
    assert two.tenants == ("anna", "anna-again")
    for tenant in two.tenants:
        run(two.ask(tenant, Ask(prompt="x")))
    assert client.asked == ["anna", "anna"]


def test_closing_closes_the_client():
    client = Client("anna")
    run(with_two_names(client).aclose())
    assert client.is_closed


def test_two_tenants_stay_two():
    client = Client("anna", "berta")
    assert with_two_names(client) is client
