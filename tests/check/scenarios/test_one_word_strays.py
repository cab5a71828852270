"""Strays that were sent count against those that never were, each word once."""

import random
from statistics import mean

import pytest
from tests.check.scenarios.word_server import obedient, word_of
from tests.check.scripted_bench import EVERYTHING, ScriptedBench, answered, plain_known
from tests.check.virtual import run

from kvfence.check.scenarios.one_word_strays import (
    P_MAX,
    ROUNDS,
    SENT_WORDS,
    Strays,
    strays_cost,
    whose_words,
)
from kvfence.check.scenarios.saying import TOLD, WORDS, Sayer

SAYER = Sayer(TOLD, WORDS[:4], asked=4, strays=1, sent=frozenset(WORDS[:4]))


def strays_of(script, seed=0):
    bench = ScriptedBench(script, known=plain_known(has=EVERYTHING))
    bench.random.seed(seed)
    return run(whose_words(bench, SAYER)), bench


def test_it_costs_no_more_than_it_says_and_goes_one_at_a_time():
    strays, bench = strays_of(obedient)
    assert len(bench.asked) == strays_cost().requests == ROUNDS * SENT_WORDS
    assert bench.most_at_once == 1
    assert (strays.sent, strays.never_sent, strays.p_value) == (0, 0, 1.0)


def test_a_word_that_everybody_gets_counts_once():
    strays, _ = strays_of(lambda sent: answered(f"{word_of(sent)} {WORDS[0]}"))
    assert (strays.sent, strays.never_sent) == (1, 0)
    assert strays.p_value == pytest.approx(0.5)


def test_words_that_are_handed_on_are_all_of_those_sent():
    told = []

    def hands_on(sent):
        told.append(word_of(sent))
        return answered(" ".join(told[-2:]))

    strays, _ = strays_of(hands_on)
    assert strays.never_sent == 0
    assert strays.p_value < P_MAX


def test_a_model_that_makes_words_up_is_seldom_below_the_limit():
    """Its words are drawn for each prompt, once and for all: over many seeds p is no smaller than it says."""
    draw = random.Random(7)
    made = {word: draw.choice(WORDS) for word in WORDS}
    values = [
        strays_of(lambda sent: answered(f"{word_of(sent)} {made[word_of(sent)]}"), seed)[0].p_value
        for seed in range(60)
    ]
    assert sum(value < 0.1 for value in values) <= 12
    assert mean(values) > 0.4


def test_what_it_says():
    assert str(Strays(11, 0, 16, 16)) == (
        "asked one at a time, 11 of 16 words that other requests were given came back, "
        "and 0 of 16 that nobody was given"
    )


def test_how_many_it_takes():
    few = Strays(0, 0, 16, 16).needed
    assert Strays(few, 0, 16, 16).p_value <= P_MAX < Strays(few - 1, 0, 16, 16).p_value
