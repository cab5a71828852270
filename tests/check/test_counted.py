"""The probe's requests are counted before they are sent, and one that the budget does not hold is not sent."""

import pytest
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.budget import Budget, Limits
from kvfence.check.client import Manner
from kvfence.check.counted import Counted
from kvfence.check.reply import Reply, Usage
from kvfence.check.stops import BudgetSpent
from kvfence.check.target import Address


class Inner:
    """A client that says what it was asked, and counts 40 prompt tokens and one of answer."""

    def __init__(self) -> None:
        self.sent: list[object] = []
        self.manner = Manner()
        self.tenants = ("a", "b")
        self.address = Address(base="http://h/v1")
        self.is_closed = False

    def adopt(self, manner: Manner) -> None:
        self.manner = manner

    def body_of(self, tenant: str, ask: Ask):
        return {"tenant": tenant}

    async def ask(self, tenant: str, ask: Ask) -> Reply:
        self.sent.append(ask)
        return Reply(status=200, usage=Usage(prompt_tokens=40, completion_tokens=1), bytes_read=9)

    async def fetch(self, tenant: str, url: str, body: object = None, *, timeout_s: float = 1.0) -> Reply:
        self.sent.append(url)
        return Reply(status=200)

    async def aclose(self) -> None:
        self.is_closed = True


async def counted(budget: Budget, *asks: Ask | str) -> Inner:
    inner = Inner()
    client = Counted(inner, budget, began_s=0.0)
    for ask in asks:
        await (client.fetch("a", ask) if isinstance(ask, str) else client.ask("a", ask))
    return inner


def test_requests_and_looks_are_counted_and_corrected_by_usage():
    budget = Budget(Limits())
    ask = Ask(prompt="hello", max_tokens=100)
    inner = run(counted(budget, "http://h/v1/models", ask, Ask(prompt=(1, 2, 3), prompt_tokens=50)))
    assert len(inner.sent) == 3
    assert budget.used.requests == 3
    assert (budget.used.prompt_tokens, budget.bytes) == (90, 18)


def test_an_enormous_answer_that_is_hung_up_on_is_not_counted_whole():
    budget = Budget(Limits(tokens=100))
    run(counted(budget, Ask(prompt="hello", max_tokens=100_000_000, hang_up_after_chunks=1)))
    assert budget.used.completion_tokens == 1


@pytest.mark.parametrize("last", ["http://h/version", Ask(prompt="hello")])
def test_what_the_budget_does_not_hold_is_not_sent(last):
    async def go() -> Inner:
        inner = Inner()
        client = Counted(inner, Budget(Limits(requests=1)), began_s=0.0)
        await client.fetch("a", "http://h/v1/models")
        with pytest.raises(BudgetSpent):
            await (client.fetch("a", last) if isinstance(last, str) else client.ask("a", last))
        return inner

    assert len(run(go()).sent) == 1


def test_the_rest_is_the_clients_own():
    async def go() -> tuple[Inner, Counted]:
        inner = Inner()
        client = Counted(inner, Budget(Limits()), began_s=0.0)
        client.adopt(Manner(model="m"))
        await client.aclose()
        return inner, client

    inner, client = run(go())
    assert (client.manner.model, client.tenants, client.address.base) == ("m", ("a", "b"), "http://h/v1")
    assert client.body_of("b", Ask(prompt="x")) == {"tenant": "b"}
    assert inner.is_closed
