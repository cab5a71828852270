"""long-recall: a long prompt that was not read shows in wrong choices; a model that cannot choose shows nothing."""

import random
import re

import pytest
from tests.check.scripted_bench import ScriptedBench, answered, count_words, plain_known, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.long_recall import DECOYS, SCENARIO, choice_of, lengths_for
from kvfence.report import Verdict

FACT = re.compile(r"The code word is (\w+)\.")
OPTION = re.compile(r"([A-Q])\) (\w+)")


def chooses(sent, read=None):
    """Finds the fact in what was read, and its letter among the options."""
    fact = FACT.search(sent.text if read is None else read)
    letters = {word: letter for letter, word in OPTION.findall(sent.text)}
    return answered(letters[fact[1]] if fact else sent.text and "A", ttft_s=0.2)


def long_recall(script, size=None, **known):
    bench = ScriptedBench(script, size=size, known=plain_known(**known))
    return play(SCENARIO, bench), bench


def test_a_long_prompt_that_was_not_read_is_suspect():
    def forgets(sent):
        return chooses(sent, "" if sent.tokens > 1_500 else None)

    outcome, bench = long_recall(forgets)
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].code == "KVF218"
    assert outcome.sightings[0].evidence["middle_right"] == 8
    assert bench.asked[0].ask.mark == "control"


def test_a_healthy_server():
    outcome, bench = long_recall(chooses, Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert (outcome.opportunities, outcome.sensitivity) == (16, 1.0)
    assert max(sent.tokens for sent in bench.asked) == pytest.approx(2_048, rel=0.02)


def test_a_model_that_misses_now_and_then():
    outcome, _ = long_recall(lambda sent: chooses(sent, "" if sent.number % 6 == 0 else None))
    assert outcome.verdict is Verdict.NO_EVIDENCE


def test_a_model_that_cannot_choose_is_not_made_to_read_on():
    outcome, bench = long_recall(lambda _sent: answered("The river."), Size(rounds=3))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert len(bench.asked) == 12


def test_refused_or_too_small():
    assert long_recall(lambda _sent: refused())[0].verdict is Verdict.INCONCLUSIVE
    assert long_recall(chooses, context_tokens=512)[0].verdict is Verdict.INCONCLUSIVE


def test_a_choice_has_its_fact_once_and_its_word_among_decoys():
    choice = choice_of(1_000, random.Random(2), count_words)
    assert choice.tokens <= 1_000
    assert len(choice.options) == DECOYS + 1
    assert len(FACT.findall(choice.text)) == 1
    assert dict(OPTION.findall(choice.text))[choice.letter] == choice.word


@pytest.mark.parametrize(
    ("said", "is_right"),
    [("{letter}", True), ("({letter}) {word}", True), ("{word}", True), ("{other}", False), ("", False)],
)
def test_what_counts_as_chosen(said, is_right):
    choice = choice_of(300, random.Random(2), count_words)
    other = next(word for word in choice.options if word != choice.word)
    text = said.format(letter=choice.letter, word=choice.word, other=other)
    assert choice.is_right(answered(text)) is is_right


def test_lengths_are_even_steps_apart():
    short, middle, long = lengths_for(1_048_576)
    assert (short, long) == (320, 65_536)
    assert middle / short == pytest.approx(long / middle, rel=0.01)
