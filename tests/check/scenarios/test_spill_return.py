"""spill-return: conversations, baits, and the way back."""

import pytest
from tests.check.scenarios.quote_server import copying, deaf, last_line, played
from tests.check.scripted_bench import ScriptedBench, answered, play

from kvfence.check.scenarios.spill_return import BAIT_WAVES, BAITS, SCENARIO
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict


def test_a_bait_that_goes_on_with_a_finished_conversation():
    """As reported of a server that keeps prompts in memory: another conversation, and a cached count of 0."""
    ended = []

    def restoring(sent):
        is_bait = sent.ask.mark == "bait" and bool(bench.in_flight_with(sent))
        if not is_bait:
            ended.append(last_line(sent))
        return answered(ended[0], cached_tokens=0) if is_bait else copying(sent)

    bench = ScriptedBench(restoring)
    with pytest.raises(ForeignMarkerSeen) as seen:
        play(SCENARIO, bench)
    assert seen.value.ask.mark == "bait"


def test_a_conversation_that_comes_back_as_another():
    first = {}

    def swapped(sent):
        key = sent.text[:40]
        if key in first:
            return answered(next(line for other, line in first.items() if other != key))
        first[key] = last_line(sent)
        return copying(sent)

    with pytest.raises(ForeignMarkerSeen):
        played(SCENARIO, swapped)


def test_a_healthy_server():
    outcome, bench = played(SCENARIO, copying)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    baits = [sent for sent in bench.asked if sent.ask.mark == "bait"]
    assert len(baits) == BAITS * BAIT_WAVES
    assert all(sent.own == () for sent in baits)
    assert outcome.opportunities == len(bench.asked) - 4
    assert "12 short requests held no marker at all" in outcome.notes


def test_a_deaf_model_shows_nothing():
    assert played(SCENARIO, deaf)[0].verdict is Verdict.INCONCLUSIVE
