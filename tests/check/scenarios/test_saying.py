"""Words are told apart by their first letters, and only those that come back right are used."""

from itertools import combinations

import pytest
from tests.check.scenarios.word_server import deaf, obedient, word_of
from tests.check.scripted_bench import EVERYTHING, ScriptedBench, answered, plain_known
from tests.check.virtual import run

from kvfence.check.asks import Endpoint
from kvfence.check.known import Need
from kvfence.check.markers_words import ALPHABETS
from kvfence.check.scenarios.boundary_prompt import _CODES
from kvfence.check.scenarios.filler import _THINGS
from kvfence.check.scenarios.saying import (
    LINED,
    PREFIX_LETTERS,
    WORDS,
    co_residence,
    find_sayer,
    first_word_of,
    heard_of,
)


def sayer_of(script, need=4, **known):
    bench = ScriptedBench(script, known=plain_known(**known))
    return run(find_sayer(bench, need)), bench


def test_words_are_told_apart_by_their_beginnings():
    for one, other in combinations(WORDS, 2):
        assert one[:PREFIX_LETTERS] != other[:PREFIX_LETTERS]
    others = {*_THINGS, *_CODES, *(word for alphabet in ALPHABETS for word in alphabet)}
    assert not others & set(WORDS)


def test_a_word_is_heard_whole_or_cut():
    words = ("walnut", "lagoon")
    assert heard_of(answered("The word is WALNUT."), words) == {"walnut"}
    assert heard_of(answered("wal"), words) == {"walnut"}
    assert heard_of(answered("wa lag"), words) == {"lagoon"}
    assert heard_of(answered("walnuts"), words) == {"walnut"}
    assert first_word_of(answered("La"), words) == "lagoon"
    assert first_word_of(answered("the lagoon"), words) is None
    assert first_word_of(answered(""), words) is None


def test_an_obedient_model_is_told():
    sayer, bench = sayer_of(obedient)
    assert len(sayer.words) == len(bench.asked) == 4
    assert sayer.right_share == 1.0
    assert bench.most_at_once == 1


def test_a_model_that_only_continues_is_made_to_echo():
    def echoes(sent):
        return obedient(sent) if sent.ask.endpoint is Endpoint.COMPLETIONS else deaf(sent)

    sayer, bench = sayer_of(echoes)
    assert sayer.form.endpoint is Endpoint.COMPLETIONS
    assert len(bench.asked) == 5 + 4
    assert sayer_of(echoes, has=EVERYTHING - {Need.COMPLETIONS})[0] is None


def test_a_model_that_tires_of_a_bare_word_goes_on_with_a_line():
    def goes_on(sent):
        return obedient(sent) if sent.ask.prompt.endswith(":") else deaf(sent)

    sayer, bench = sayer_of(goes_on)
    assert sayer.form is LINED
    assert len(bench.asked) == 5 + 5 + 4


def test_a_form_in_which_too_few_words_can_still_come_right_is_left():
    sayer, bench = sayer_of(deaf)
    assert sayer is None
    assert len(bench.asked) == 3 * 5  # of eight words in each of three forms, four must come right


def test_words_that_come_back_wrong_are_not_used():
    wrong = set(WORDS[::4])
    sayer, _ = sayer_of(lambda sent: deaf(sent) if word_of(sent) in wrong else obedient(sent))
    assert not wrong & set(sayer.words)
    assert sayer.right_share <= 1.0


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        ({}, 1.0),
        ({"nodes": ("one", "two")}, None),
        ({"is_loopback": False}, None),
        ({"is_loopback": False, "co_residence": 0.25}, 0.25),
        ({"co_residence": 0.5}, 0.5),
    ],
)
def test_co_residence_is_measured_or_that_of_one_server_of_ones_own(facts, share):
    assert co_residence(plain_known(**facts)) == share
