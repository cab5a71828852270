"""The budget: what a request may cost is taken before it is sent, and corrected by what the server says."""

import pytest

from kvfence.check.asks import Ask
from kvfence.check.budget import Budget, Limits, Price
from kvfence.check.reply import Reply, Usage
from kvfence.check.stops import BudgetSpent
from kvfence.report import Cost

ASK = Ask(prompt="hello", max_tokens=10, n=2)


def test_a_request_is_counted_when_it_is_sent():
    budget = Budget(Limits())
    budget.take(ASK, 100, at_s=0.0)
    assert budget.used == Cost(requests=1, prompt_tokens=100, completion_tokens=20)


def test_what_the_server_says_corrects_the_estimate():
    budget = Budget(Limits())
    estimate = budget.take(ASK, 100, at_s=0.0)
    usage = Usage(prompt_tokens=130, completion_tokens=5)
    budget.settle(estimate, Reply(status=200, usage=usage, bytes_read=700))
    assert budget.used == Cost(requests=1, prompt_tokens=130, completion_tokens=5)
    assert budget.bytes == 700


def test_a_prompt_that_the_server_says_was_shorter_is_counted_as_it_was_sent():
    budget = Budget(Limits())
    estimate = budget.take(ASK, 100, at_s=0.0)
    budget.settle(estimate, Reply(status=200, usage=Usage(prompt_tokens=1)))
    assert budget.used.prompt_tokens == 100
    assert budget.used.completion_tokens == 20  # it did not say: what was taken stays


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(requests=1), "requests"),
        (Limits(tokens=240), "tokens"),
        (Limits(seconds=5.0), "seconds"),
        (Limits(money=0.00024), "money"),
    ],
)
def test_a_request_that_would_pass_a_limit_is_not_sent_and_not_counted(limits: Limits, word: str):
    budget = Budget(limits, Price(prompt=1.0, completion=1.0))
    budget.take(ASK, 100, at_s=4.0)
    before = budget.used
    with pytest.raises(BudgetSpent, match=word):
        budget.take(ASK, 101, at_s=6.0)
    assert budget.used == before


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(requests=2), Limits(tokens=240), Limits(seconds=6.0), Limits(money=0.00024)]
)
def test_a_request_at_the_limit_is_sent(limits: Limits):
    budget = Budget(limits, Price(prompt=1.0, completion=1.0))
    budget.take(ASK, 100, at_s=4.0)
    budget.take(ASK, 100, at_s=6.0)
    assert budget.used.requests == 2


def test_bytes_are_a_limit_for_the_request_that_comes_after():
    budget = Budget(Limits(bytes=100))
    budget.settle(budget.take(ASK, 1, at_s=0.0), Reply(status=200, bytes_read=101))
    with pytest.raises(BudgetSpent, match="bytes"):
        budget.take(ASK, 1, at_s=0.0)


def test_a_resumed_run_goes_on_from_what_was_used():
    budget = Budget(Limits(requests=3), used=Cost(requests=3))
    with pytest.raises(BudgetSpent):
        budget.take(ASK, 1, at_s=0.0)
