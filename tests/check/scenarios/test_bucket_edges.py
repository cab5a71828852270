"""bucket-edges: padding that touches live rows, or any batch that garbles, is suspect; a healthy one is not."""

import pytest
from tests.check.scenarios.word_server import deaf, obedient
from tests.check.scripted_bench import ScriptedBench, answered, play, refused

from kvfence.check.scenario import Size
from kvfence.check.scenarios.bucket_edges import SCENARIO
from kvfence.report import Verdict


class Batch:
    """Garbles answers by the size of the batch that a request arrived in."""

    def __init__(self, garbles):
        self.garbles, self.bench, self.size, self.left = garbles, None, 0, 0

    def __call__(self, sent):
        if not self.left:
            self.size = self.left = 1 + len(self.bench.in_flight_with(sent))
        self.left -= 1
        return answered("the sea") if self.garbles(self.size, self.left) else obedient(sent)


def edges(script, size=None):
    bench = ScriptedBench(script, size=size)
    if isinstance(script, Batch):
        script.bench = bench
    return play(SCENARIO, bench), bench


def test_padding_that_touches_one_row_is_suspect():
    outcome, _ = edges(Batch(lambda size, left: size not in {1, 2, 4, 8, 16} and left == 0))
    assert outcome.verdict is Verdict.SUSPECT, (outcome.why, outcome.p_value)
    assert outcome.p_value <= 0.01
    assert outcome.sightings[0].subject_key == "batch-edges"


def test_every_batch_that_garbles_is_suspect():
    outcome, _ = edges(Batch(lambda size, left: size > 1 and left % 3 == 0))
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].subject_key == "batches"


def test_a_healthy_server():
    outcome, bench = edges(obedient, Size(rounds=2))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.p_value == 1.0
    assert (outcome.opportunities, outcome.sensitivity) == (232, 1.0)
    assert bench.most_at_once == 17


def test_a_model_that_now_and_then_says_something_else():
    outcome, _ = edges(lambda sent: answered("hm") if sent.number % 9 == 8 else obedient(sent))
    assert outcome.verdict is Verdict.NO_EVIDENCE


@pytest.mark.parametrize("script", [deaf, lambda _sent: refused("later", status=429)])
def test_nothing_can_be_said_without_a_forced_answer(script):
    assert edges(script)[0].verdict is Verdict.INCONCLUSIVE
