"""What is read from a real run, and how each fault of the catalogue is served; the runs themselves take hours."""

import pytest
from tests.check.controls import HARD
from tests.check.engine_controls import counts_for, faults_outside, read, serve_flags

from kvfence.faults import CATALOGUE
from kvfence.report import Answered, FindingMade, RunStarted, ScenarioEnded, Verdict
from kvfence.report.finding import Finding, Severity

STARTED = RunStarted(tool="check", version="0", run="r", started="2026-01-01T00:00:00+00:00", targets=("x",))
FOUND = Finding(code="KVF201", severity=Severity.CRITICAL, about="x", what="a marker", subject_key="k")


def answered(number):
    return Answered(at_s=number, scenario="one-word", request=number, tenant="a", mark="probe")


def test_the_first_finding_counts_with_what_it_took():
    events = (
        STARTED,
        answered(1),
        ScenarioEnded(at_s=1, scenario="one-word", verdict=Verdict.NO_EVIDENCE, why=""),
        answered(2),
        FindingMade(at_s=3, finding=FOUND, scenario="boundary"),
        ScenarioEnded(at_s=3, scenario="boundary", verdict=Verdict.LEAK, why=""),
        answered(4),
    )
    played = read(events, 7, HARD)
    assert (played.seed, played.scenario, played.verdict, played.codes) == (
        7,
        "boundary",
        "leak",
        ("KVF201",),
    )
    assert (played.requests, played.seconds) == (2, 3)
    assert played.ended == {"one-word": "no evidence", "boundary": "leak"}


def test_a_run_without_a_finding_counts_whole():
    ended = ScenarioEnded(at_s=5, scenario="one-word", verdict=Verdict.EXPOSED, why="")
    events = (STARTED, answered(1), ended)
    assert read(events, 0, HARD).scenario is None
    assert read(events, 0, HARD).seconds == 5
    assert read(events, 0, HARD | {Verdict.EXPOSED}).scenario == "one-word"


@pytest.mark.parametrize("name", faults_outside())
def test_a_fault_is_served_without_the_layers_that_stop_it(name):
    flags = serve_flags(name)
    assert flags[flags.index("--unsafe-fault") + 1] == name
    assert {"--i-understand-this-leaks-data", "manifest", "seal", "guard"} <= set(flags)
    assert CATALOGUE[name].runs_on_engine
    assert counts_for(name) >= HARD
