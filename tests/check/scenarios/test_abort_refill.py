"""abort-refill: storms of cancelled prefills, and who takes their pages."""

import pytest
from tests.check.scenarios.quote_server import copying, deaf, last_line
from tests.check.scripted_bench import ScriptedBench, answered, play, refused

from kvfence.check.reply import Failure, Reply
from kvfence.check.scenarios.abort_refill import SCENARIO, STORM, STORMS
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.report import Verdict

PREFILL_S = 2.0


class Cancelling:
    """Long prompts take a while and can be hung up on; `say` answers who comes after the last of a storm."""

    def __init__(self, say=None):
        self.say = say
        self.cancelled = []
        self.bench = ScriptedBench(self)

    def __call__(self, sent):
        after_s = sent.ask.hang_up_after_s
        if after_s is not None and after_s < PREFILL_S:
            self.cancelled.append(last_line(sent))
            return Reply(status=200, failure=Failure.HUNG_UP, total_s=after_s)
        if sent.ask.mark == "filler":
            return answered(last_line(sent), prompt_tokens=sent.tokens, ttft_s=PREFILL_S)
        if self.say and self.cancelled and sent.ask.mark == "probe" and self.bench.in_flight_with(sent):
            return answered(self.say(self, sent))
        return copying(sent)


def test_late_bytes_are_a_leak():
    with pytest.raises(ForeignMarkerSeen):
        play(SCENARIO, Cancelling(lambda server, _: server.cancelled[-1]).bench)


def test_a_healthy_server():
    server = Cancelling()
    outcome = play(SCENARIO, server.bench)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert len(server.cancelled) == STORM * STORMS
    assert outcome.opportunities == 8 * STORMS
    moments = {sent.ask.hang_up_after_s for sent in server.bench.asked} - {None}
    assert len(moments) == STORMS
    assert all(0 < moment < PREFILL_S for moment in moments)


def test_markers_that_refills_alone_lose_are_suspect():
    probes = []

    def loses(_server, sent):
        """Waves of plain load and of refills take turns."""
        probes.append(sent)
        return last_line(sent) if len(probes) <= 8 or (len(probes) - 9) // 8 % 2 == 1 else "uh uh"

    server = Cancelling()
    server.bench.script = lambda sent: (
        answered(loses(server, sent)) if sent.ask.mark == "probe" else server(sent)
    )
    outcome = play(SCENARIO, server.bench)
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].evidence["control_lost"] == 0


def test_nothing_to_cancel_is_inconclusive():
    outcome = play(SCENARIO, ScriptedBench(copying))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "no prefill could be hung up on" in outcome.why


def test_a_server_that_refuses_long_prompts_is_inconclusive():
    outcome = play(
        SCENARIO, ScriptedBench(lambda sent: refused() if sent.ask.mark == "filler" else copying(sent))
    )
    assert outcome.verdict is Verdict.INCONCLUSIVE


def test_a_deaf_model_shows_nothing():
    server = Cancelling()
    server.bench.script = lambda sent: deaf(sent) if sent.ask.mark != "filler" else server(sent)
    assert play(SCENARIO, server.bench).verdict is Verdict.INCONCLUSIVE
