"""What events go through on the command line."""

import io
from datetime import date
from pathlib import Path

from rich.console import Console

from kvfence.cli.recorder import Recorder
from kvfence.report import Answered, Cost, Finding, FindingMade, Noted, RunStarted, Severity
from kvfence.report.baseline import baseline_text
from kvfence.report.exit_codes import OnInconclusive
from kvfence.report.formats import Format
from kvfence.report.jsonl import read_events

STARTED = RunStarted(tool="check", version="0", run="r", started="2026-01-01T00:00:00Z", targets=("t",))
FINDING = Finding(code="KVF204", severity=Severity.HIGH, about="t m", what="half is gone", subject_key="head")


def quiet() -> Console:
    return Console(file=io.StringIO(), width=100, color_system=None)


def test_an_event_is_in_the_file_before_the_next_thing_happens(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with Recorder(console=quiet(), jsonl=path) as recorder:
        recorder.take(STARTED)
        assert read_events(path).events == (STARTED,)


def test_a_run_that_goes_on_has_its_beginning(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    with Recorder(console=quiet(), jsonl=path) as recorder:
        recorder.take(STARTED)
    with Recorder(console=quiet(), jsonl=path, goes_on=True) as recorder:
        recorder.take(Noted(at_s=3.0, text="again"))
        assert [type(event) for event in recorder.events] == [RunStarted, Noted]
        assert recorder.last_s == 3.0
    assert len(read_events(path).events) == 2


def test_a_baseline_accepts_before_anything_is_written(tmp_path: Path):
    baseline = tmp_path / "accepted.toml"
    baseline.write_text(baseline_text([FINDING], reason="known", expires=date(2999, 1, 1)))
    with Recorder(console=quiet(), jsonl=tmp_path / "run.jsonl", baseline=baseline) as recorder:
        recorder.take(STARTED)
        recorder.take(FindingMade(finding=FINDING))
    _, made = read_events(tmp_path / "run.jsonl").events
    assert made.accepted.startswith("known")


def test_what_was_used_is_counted_from_the_answers():
    with Recorder(console=quiet(), jsonl=None) as recorder:
        for tokens in (10, None):
            recorder.take(
                Answered(
                    at_s=2.0,
                    scenario="s",
                    request=1,
                    tenant="a",
                    mark="probe",
                    prompt_tokens=tokens,
                    expected_prompt_tokens=7,
                    completion_tokens=1,
                )
            )
    assert recorder.used == Cost(requests=2, prompt_tokens=17, completion_tokens=2, seconds=2.0)


def test_reports_are_written_of_what_there_is(tmp_path: Path):
    console = quiet()
    with Recorder(console=console, jsonl=None) as recorder:
        recorder.take(STARTED)
        recorder.take(FindingMade(finding=FINDING))
    recorder.report(
        {Format.JSON: tmp_path / "report.json"},
        on_inconclusive=OnInconclusive.TELL,
        fail_on=Severity.MEDIUM,
    )
    assert "KVF204" in (tmp_path / "report.json").read_text()
    assert "half is gone" in console.file.getvalue()


def test_a_long_run_keeps_no_events_in_memory():
    with Recorder(console=quiet(), jsonl=None, is_long=True) as recorder:
        recorder.take(STARTED)
        assert recorder.events == []
