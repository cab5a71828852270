"""first-token: swapped first words are counted, whatever follows them."""

import pytest
from tests.check.scenarios.word_server import Mixing, deaf, obedient
from tests.check.scripted_bench import ScriptedBench, answered, play

from kvfence.check.scenarios.first_token import SCENARIO
from kvfence.report import Severity, Verdict


def first_token(script):
    bench = ScriptedBench(script)
    if isinstance(script, Mixing):
        script.bench = bench
    return play(SCENARIO, bench), bench


@pytest.mark.parametrize("cut", [3, 9])
def test_a_first_token_of_another_request_is_a_leak(cut):
    outcome, _ = first_token(Mixing(every=9, say=lambda own, other: f"{other[:cut]} {own} {own}"))
    assert outcome.verdict is Verdict.LEAK
    (sighting,) = outcome.sightings
    assert (sighting.code, sighting.severity) == ("KVF217", Severity.CRITICAL)
    assert sighting.evidence["swaps"] >= 2


def test_a_healthy_server():
    outcome, bench = first_token(obedient)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert (outcome.opportunities, outcome.sensitivity) == (64, 1.0)
    assert bench.most_at_once == 16


def test_a_foreign_word_later_on_is_not_this_scenarios():
    outcome, _ = first_token(Mixing(every=9, say=lambda own, other: f"{own} {other}"))
    assert outcome.verdict is Verdict.NO_EVIDENCE


def test_one_swap_says_nothing():
    outcome, _ = first_token(Mixing(every=50))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert not outcome.sightings


def test_a_model_that_begins_with_nothing_wanted():
    assert first_token(deaf)[0].verdict is Verdict.INCONCLUSIVE
    bench = ScriptedBench(None)
    bench.script = lambda sent: answered("Hm.") if bench.in_flight_with(sent) else obedient(sent)
    assert play(SCENARIO, bench).verdict is Verdict.INCONCLUSIVE
