"""a-x-a: what a stranger leaves behind shows in the next answer, as a marker or as a change."""

import pytest
from tests.check.scripted_bench import ScriptedBench, answered, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.a_x_a import PROBE, SCENARIO
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


class Sequential:
    """Remembers what was asked before. `after_stranger` answers a probe that follows a stranger."""

    def __init__(self, after_stranger=None, plain=lambda sent: answered("A river ran.")):
        self.after_stranger, self.plain, self.left = after_stranger, plain, None

    def __call__(self, sent):
        if sent.text != PROBE:
            self.left = sent.own[0].text
            return answered(f" {self.left} {self.left}")
        left, self.left = self.left, None
        if left and self.after_stranger:
            return self.after_stranger(left)
        return self.plain(sent)


def a_x_a(script, size=None):
    bench = ScriptedBench(script, size=size)
    return play(SCENARIO, bench), bench


def test_a_strangers_marker_stops_the_run():
    with pytest.raises(ForeignMarkerSeen):
        a_x_a(Sequential(lambda left: answered(f"A river {left}")))


def test_an_answer_that_changes_after_a_stranger_is_suspect():
    outcome, _ = a_x_a(Sequential(lambda left: answered("A sea.")), Size(rounds=2))
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.p_value < 0.001
    assert outcome.sightings[0].evidence["changed"] == 12


def test_a_healthy_server():
    outcome, bench = a_x_a(Sequential())
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert (outcome.opportunities, outcome.sensitivity) == (6, 1.0)
    assert bench.most_at_once == 1
    assert {sent.tenant for sent in bench.asked if sent.own} == {"b"}


def test_a_server_that_never_says_the_same_twice():
    outcome, _ = a_x_a(Sequential(plain=lambda sent: answered(f"{sent.number}")))
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_a_server_that_says_something_else_now_and_then():
    outcome, _ = a_x_a(Sequential(plain=lambda sent: answered("x" if sent.number % 7 == 6 else "y")))
    assert outcome.verdict is Verdict.NO_EVIDENCE


def test_no_answers():
    assert a_x_a(lambda _sent: refused("later", status=429))[0].verdict is Verdict.INCONCLUSIVE
