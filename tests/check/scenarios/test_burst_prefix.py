"""burst-prefix: bursts of one prompt against bursts of many."""

import pytest
from tests.check.scenarios.quote_server import Leaking, copying, deaf, played
from tests.check.scripted_bench import ScriptedBench, answered, play

from kvfence.check.scenario import Size
from kvfence.check.scenarios.burst_prefix import SCENARIO
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


class Unwritten:
    """Who has the prompt of one in flight reads pages that are not written yet."""

    def __init__(self, say):
        self.say = say
        self.bench = ScriptedBench(self)

    def __call__(self, sent):
        is_same = any(other.text == sent.text for other in self.bench.in_flight_with(sent))
        return answered(self.say(self.bench)) if is_same else copying(sent)


def test_what_the_pages_held_before_is_a_leak():
    script = Unwritten(lambda bench: bench.markers[0].text)
    with pytest.raises(ForeignMarkerSeen):
        play(SCENARIO, script.bench)


def test_garbage_is_suspect_beside_the_control():
    outcome = play(SCENARIO, Unwritten(lambda _: "uh uh uh").bench)
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.p_value < 1e-6
    (sighting,) = outcome.sightings
    assert sighting.code == "KVF206"
    assert sighting.evidence["control_lost"] == 0


def test_a_server_that_loses_as_much_under_plain_load_is_not():
    """Every third answer is lost, whatever was asked: rounding, or a model that obeys badly."""
    outcome, _ = played(SCENARIO, lambda sent: deaf(sent) if sent.number % 3 == 0 else copying(sent))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.p_value > 0.1
    assert 0.5 < outcome.sensitivity < 0.8


def test_a_healthy_server():
    outcome, bench = played(SCENARIO, copying, size=Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.p_value == 1
    assert outcome.opportunities == 8 * 13  # the scripted server answers those that are hung up on
    assert any(sent.ask.hang_up_after_s for sent in bench.asked)


def test_another_tenants_words_stop_it():
    with pytest.raises(ForeignMarkerSeen):
        played(SCENARIO, Leaking())


def test_a_deaf_model_shows_nothing():
    assert played(SCENARIO, deaf)[0].verdict is Verdict.INCONCLUSIVE
