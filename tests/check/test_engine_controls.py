"""What is read from a real run while it grows, and how each fault is served; the runs themselves take hours."""

import pytest
from tests.check.controls import HARD
from tests.check.engine_controls import Tail, Watch, counts_for, moved_in, serve_flags
from tests.check.engine_sizes import ALSO, BLIND, HEALTHY, PAST_IT, SIZES, faults_outside, scenarios_for

from kvfence.check.scenarios import SCENARIOS
from kvfence.faults import CATALOGUE
from kvfence.report import Answered, FindingMade, RunStarted, ScenarioEnded, Verdict
from kvfence.report.finding import Finding, Severity
from kvfence.report.jsonl import as_lines

STARTED = RunStarted(tool="check", version="0", run="r", started="2026-01-01T00:00:00+00:00", targets=("x",))
FOUND = Finding(code="KVF201", severity=Severity.CRITICAL, about="x", what="a marker", subject_key="k")


def answered(number):
    return Answered(at_s=number, scenario="one-word", request=number, tenant="a", mark="probe")


def watched(events, counts=HARD):
    watch = Watch(7, counts)
    for event in events:
        watch.take(event)
    return watch


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
    played = watched(events).played()
    assert (played.seed, played.scenario, played.verdict) == (7, "boundary", "leak")
    assert (played.codes, played.requests, played.seconds) == (("KVF201",), 2, 3)
    assert played.ended == {"one-word": "no evidence", "boundary": "leak"}
    assert played.limit_s is None


def test_a_run_without_a_finding_counts_whole():
    ended = ScenarioEnded(at_s=5, scenario="one-word", verdict=Verdict.EXPOSED, why="")
    events = (STARTED, answered(1), ended)
    assert watched(events).found is None
    assert watched(events).played(limit_s=9).seconds == 5
    assert watched(events).played(limit_s=9).limit_s == 9
    assert watched(events, HARD | {Verdict.EXPOSED}).played().scenario == "one-word"


def test_a_growing_file_is_read_by_whole_lines(tmp_path):
    path = tmp_path / "events.jsonl"
    tail = Tail(path)
    assert tail.more() == []
    first, second = as_lines([STARTED]), as_lines([answered(1)])
    path.write_text(first + second[:9])
    assert tail.more() == [STARTED]
    assert tail.more() == []
    path.write_text(first + second)
    assert tail.more() == [answered(1)]


def test_a_trace_on_the_path_has_not_moved_and_another_one_has(tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"trace":1,"deployment":"d","version":"0"}\n')
    assert moved_in(trace) == {}
    trace.write_text('{"trace":1,"deployment":"d","version":"0"}\n{"what":"is this"}\n{}\n')
    assert moved_in(trace)


@pytest.mark.parametrize("name", faults_outside())
def test_a_fault_is_served_without_the_layers_that_stop_it(name):
    flags = serve_flags(name)
    assert flags[flags.index("--unsafe-fault") + 1] == name
    assert {"--i-understand-this-leaks-data", "manifest", "seal", "guard"} <= set(flags)
    assert counts_for(name) >= HARD
    assert scenarios_for(name)


def test_each_fault_that_real_nodes_get_to_is_played_or_has_a_reason():
    on_nodes = {name for name, fault in CATALOGUE.items() if fault.runs_on_engine}
    assert set(faults_outside()) | set(BLIND) == on_nodes
    assert not set(faults_outside()) & set(BLIND)


def test_the_tables_name_what_there_is():
    assert set(SIZES) | set(ALSO) <= set(faults_outside())
    assert {name for names in ALSO.values() for name in names} <= set(SCENARIOS)


def test_what_looks_past_a_class_is_left_out_of_it_alone():
    assert "plausibility" not in scenarios_for("false-completion/whole-claimed")
    assert "plausibility" in scenarios_for("row-mixup/shifted-tables")
    assert all(names <= set(SCENARIOS) for names in PAST_IT.values())


def test_a_fault_that_the_catalogue_says_is_seen_outside_is_not_hidden():
    hidden = [
        name for name in BLIND if any(layer.value == "outside check" for layer in CATALOGUE[name].caught_by)
    ]
    assert not hidden


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_deployment_has_no_fault(name):
    assert not [word for word in HEALTHY[name] if "unsafe" in word]
