"""Filler is as long as wanted by whatever counter there is, never longer, and never the same twice."""

import random

import pytest

from kvfence.check.scenarios.filler import filler, nonce

COUNTERS = {
    "words": lambda text: len(text.split()),
    "bytes": lambda text: len(text) // 4,
    "calibrated": lambda text: round(1.37 * len(text.split())),
}


@pytest.mark.parametrize("how", COUNTERS)
@pytest.mark.parametrize("tokens", [1, 7, 64, 1_000, 20_000])
def test_it_is_as_long_as_wanted_and_not_longer(how, tokens):
    text = filler(tokens, random.Random(1), COUNTERS[how])
    have = COUNTERS[how](text)
    assert have <= tokens
    assert have >= tokens - max(12, tokens // 100)


def test_nothing_of_nothing():
    assert filler(0, random.Random(1), COUNTERS["words"]) == ""


def test_a_seed_gives_it_again_and_the_next_is_another():
    rng, again = random.Random(7), random.Random(7)
    first, second = (filler(100, rng, COUNTERS["words"]) for _ in range(2))
    assert first == filler(100, again, COUNTERS["words"])
    assert first != second
    assert nonce(rng) != nonce(rng)
