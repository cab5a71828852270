"""churn-steady: divergence under churn, beside controls that diverge or do not."""

import random

import pytest
from tests.check.scenarios.quote_server import copying, last_line
from tests.check.scripted_bench import ScriptedBench, answered, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.churn_steady import (
    ALONE_MAX,
    BLOCKS,
    SCENARIO,
    STEADY,
    STEADY_TOKENS,
    distance,
)
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


class Diverging:
    """Steady answers change with a chance that depends on whether others beside come and go."""

    def __init__(self, *, plain, churn, say=None):
        self.shares, self.say = (plain, churn), say
        self.bench = ScriptedBench(self)

    def __call__(self, sent):
        own = last_line(sent)
        if sent.ask.mark != "probe":
            return copying(sent)
        beside = [other for other in self.bench.in_flight_with(sent) if other.ask.mark == "beside"]
        is_churn = any((other.ask.max_tokens or 0) < STEADY_TOKENS for other in beside)
        if beside and self.bench.script_random.random() < self.shares[is_churn]:
            return answered(self.say(self) if self.say else own[: len(own) // 2] + " uh uh")
        return answered(own)

    def play(self, **options):
        self.bench = ScriptedBench(self, **options)
        self.bench.script_random = random.Random(7)
        return play(SCENARIO, self.bench)


def test_divergence_under_churn_alone_is_suspect_and_no_more():
    outcome = Diverging(plain=0.0, churn=0.9).play()
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.p_value < 0.001
    (sighting,) = outcome.sightings
    assert sighting.code == "KVF206"
    assert sighting.evidence["threshold"] == 0


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_server_that_rounds_as_much_under_plain_load_is_not(share):
    outcome = Diverging(plain=share, churn=share).play(size=Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE or share == 1.0
    assert outcome.p_value > 0.01
    assert outcome.sightings == ()


def test_anothers_words_are_more_than_divergence():
    with pytest.raises(ForeignMarkerSeen):
        Diverging(plain=0.0, churn=0.3, say=lambda server: server.bench.markers[-1].text).play()


def test_a_healthy_server():
    outcome = Diverging(plain=0.0, churn=0.0).play()
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.opportunities == BLOCKS * STEADY
    assert outcome.sensitivity == 1
    assert outcome.notes == ("alone, 0 of 3 requests were answered in more than one way",)


def test_a_reference_that_something_had_touched_moves_no_distance():
    """The first answer of all is wrong; the reference is what was said twice."""
    server = Diverging(plain=0.0, churn=0.9)
    honest = Diverging.__call__

    def touched(sent):
        return answered("uh uh") if sent.number == 1 else honest(server, sent)

    server.bench = ScriptedBench(touched)
    server.bench.script_random = random.Random(7)
    outcome = play(SCENARIO, server.bench)
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].evidence["threshold"] == 0
    assert outcome.notes == ("alone, 1 of 3 requests were answered in more than one way",)


def test_a_server_that_never_says_the_same_is_asked_so_often_and_no_more():
    numbered = ScriptedBench(lambda sent: answered(f"{sent.number} {last_line(sent)}"))
    assert play(SCENARIO, numbered).verdict is not Verdict.SUSPECT
    assert [sent.ask.mark for sent in numbered.asked].count("control") == ALONE_MAX * STEADY


def test_too_few_answers_fit_nothing():
    script = ScriptedBench(lambda sent: refused(status=503) if sent.number > 20 else copying(sent))
    outcome = play(SCENARIO, script)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "too few" in outcome.why


def test_no_answer_alone():
    assert play(SCENARIO, ScriptedBench(lambda _: refused())).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "share"),
    [("abcd", 0.0), ("abxx", 0.5), ("ab", 0.5), ("xbcd", 1.0), ("", 1.0), ("abcdabcd", 0.5)],
)
def test_distance(text, share):
    assert distance("abcd", text) == share
