"""fault-injection: real commands, and what answers around them are worth."""

import asyncio
import dataclasses
import sys

import pytest
from tests.check.scenarios.quote_server import copying, deaf, last_line
from tests.check.scripted_bench import ScriptedBench, answered, plain_known, refused

from kvfence.check.scenarios.fault_injection import SCENARIO, WAVES_AFTER, WAVES_BEFORE
from kvfence.check.scenarios.quoting import AT_ONCE, CONTROLS
from kvfence.check.stops import ForeignMarkerSeen
from kvfence.protocol.errors import InvariantError, OperatorError
from kvfence.report import Verdict

HEALTHY = CONTROLS + WAVES_BEFORE * AT_ONCE


def at_once(reply):
    """The scripted answer, without the time it takes: the command here is a real process."""
    return dataclasses.replace(reply, total_s=0.0)


def broken(script, *, hook=(sys.executable, "-c", "pass"), after=HEALTHY):
    """The outcome on a server that answers by `script` once the command has been started."""
    known = plain_known(hook=hook)
    bench = ScriptedBench(
        lambda sent: at_once(copying(sent) if sent.number <= after else script(sent)), known=known
    )
    return asyncio.run(SCENARIO.run(bench)), bench


def test_a_load_that_failed_and_is_called_done():
    lines = []

    def stale(sent):
        lines.append(last_line(sent))
        return answered(lines[-2] if len(lines) > 9 else lines[-1])

    with pytest.raises(ForeignMarkerSeen):
        broken(stale)


def test_status_200_without_ones_own_marker_is_suspect():
    outcome, _ = broken(lambda sent: deaf(sent) if sent.number % 2 else copying(sent))
    assert outcome.verdict is Verdict.SUSPECT
    assert outcome.sightings[0].code == "KVF206"


def test_failures_that_say_so_are_no_finding():
    outcome, bench = broken(lambda sent: refused(status=500) if sent.number % 3 else copying(sent))
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert "requests failed while or after" in outcome.notes[0]
    said = SCENARIO.cost(bench.known, bench.size)
    assert bench.used.requests <= said.requests
    assert bench.used.prompt_tokens <= said.prompt_tokens


def test_a_healthy_server():
    outcome, _ = broken(copying)
    assert outcome.verdict is Verdict.NO_EVIDENCE
    assert outcome.opportunities >= WAVES_AFTER * AT_ONCE
    assert outcome.sensitivity == 1


def test_a_command_that_fails_is_inconclusive():
    outcome, _ = broken(copying, hook=(sys.executable, "-c", "raise SystemExit(3)"))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "ended with 3" in outcome.why


def test_a_command_that_is_not_there_is_the_operators():
    with pytest.raises(OperatorError, match="could not be started"):
        broken(copying, hook=("/no/such/program",))


def test_a_command_that_is_left_running_is_ended():
    async def go():
        has_begun = asyncio.Event()

        def script(sent):
            if sent.number > HEALTHY:
                has_begun.set()
            return at_once(copying(sent))

        bench = ScriptedBench(script, known=plain_known(hook=("sleep", "1000")))
        task = asyncio.ensure_future(SCENARIO.run(bench))
        await has_begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task

    assert asyncio.run(go()).cancelled()


def test_without_a_command_it_is_not_run():
    with pytest.raises(InvariantError):
        asyncio.run(SCENARIO.run(ScriptedBench(copying, known=plain_known())))
