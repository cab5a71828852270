"""The flags of `kvfence check`, from words to values."""

import pytest

from kvfence.check.budget import Limits, Price
from kvfence.cli.check_options import Replay, limits_of, price_of, replay_of
from kvfence.protocol.errors import OperatorError

PRICE = Price(prompt=0.15, completion=0.6)


def test_limits_are_read():
    words = ["requests=500", "tokens=2e6", "bytes=1000", "seconds=60.5", "money=5"]
    assert limits_of(words, PRICE) == Limits(
        requests=500, tokens=2_000_000, bytes=1_000, seconds=60.5, money=5.0
    )


def test_no_words_are_no_limits():
    assert limits_of([], None) == Limits()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["request=5"], "did you mean requests"),
        (["zzz=5"], "there are requests"),
        (["requests"], "above 0"),
        (["requests="], "above 0"),
        (["requests=-1"], "above 0"),
        (["requests=nan"], "above 0"),
        (["seconds=nan"], "above 0"),
        (["tokens=inf"], "above 0"),
        (["money=5"], "--price"),
    ],
)
def test_a_wrong_budget_says_what_to_do(words: list[str], said: str):
    with pytest.raises(OperatorError, match=said):
        limits_of(words, None)


def test_a_price_is_for_a_million_tokens():
    assert price_of("0.15/0.6") == PRICE
    assert price_of(None) is None


@pytest.mark.parametrize("words", ["", "1", "1/2/3", "a/b", "-1/2", "nan/1", "inf/1"])
def test_a_wrong_price_says_what_to_do(words: str):
    with pytest.raises(OperatorError, match=r"0.15/0.60"):
        price_of(words)


@pytest.mark.parametrize("words", ["7.boundary.quick", "7r3.boundary.quick"])
def test_a_replay_id_is_read(words: str):
    assert replay_of(words) == Replay(seed=7, scenario="boundary", profile="quick")


@pytest.mark.parametrize("words", ["", "7", "7.boundary", "x.boundary.quick", "7.a.b.c"])
def test_a_wrong_replay_id_says_what_to_do(words: str):
    with pytest.raises(OperatorError, match="that a finding shows"):
        replay_of(words)
