"""`kvfence report convert`: every format, to a file or to standard output, and what it says of broken files."""

import json

import pytest
from tests.report.samples import AUDIT, INCIDENT, INTERRUPTED, LEAKING
from typer.testing import CliRunner

from kvfence.cli.app import app
from kvfence.report.formats import Format
from kvfence.report.jsonl import as_lines

BASELINE = f"""\
[[accepted]]
fingerprint = "{INCIDENT.fingerprint}"
reason = "known"
expires = 2999-01-01
"""


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(as_lines(AUDIT))
    return path


def convert(*words: object, **more):
    words = ["report", "convert", *map(str, words)]
    return CliRunner().invoke(app, words, env={"COLUMNS": "120", "TERM": "dumb"}, **more)


@pytest.mark.parametrize("to", Format)
def test_every_format_goes_to_standard_output_or_to_a_file(to, run, tmp_path):
    shown = convert(run, "--to", to)
    assert shown.exit_code == 0
    written = convert(run, "--to", to, "--out", tmp_path / "out")
    assert (written.exit_code, written.output) == (0, "")
    assert (tmp_path / "out").read_text().rstrip() == shown.output.rstrip()
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_a_run_can_come_from_standard_input():
    result = convert("-", "--to", "json", input=as_lines(LEAKING))
    assert result.exit_code == 0
    assert json.loads(result.output)["exit_code"] == 1


def test_sarif_points_to_the_runs_file(run):
    log = json.loads(convert(run, "--to", "sarif").output)
    places = [result["locations"][0].get("physicalLocation") for result in log["runs"][0]["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == [
        "logs/prefill-1.log", f"file://{run}", f"file://{run}",
    ]  # fmt: skip


def test_a_baseline_accepts_findings(run, tmp_path):
    baseline = tmp_path / "baseline.toml"
    baseline.write_text(BASELINE)
    data = json.loads(convert(run, "--to", "json", "--baseline", baseline).output)
    assert data["findings"][0]["accepted"] == "known (until 2999-01-01)"
    assert data["headline"].startswith("MEDIUM KVF104")


def test_thresholds_reach_junit(run, tmp_path):
    assert 'failures="2"' in convert(run, "--to", "junit").output
    assert 'failures="1"' in convert(run, "--to", "junit", "--fail-on", "critical").output
    path = tmp_path / "cut.jsonl"
    path.write_text(as_lines(INTERRUPTED))
    assert 'failures="1"' in convert(path, "--to", "junit", "--on-inconclusive", "fail").output


def test_a_run_that_was_cut_off_is_converted_and_told(tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_text(as_lines(INTERRUPTED) + '{"event":"ans')
    result = convert(path, "--to", "json")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: the last line is cut off")
    assert json.loads(result.stdout)["interrupted"]


def test_a_broken_file_is_a_usage_error_with_its_line_and_writes_nothing(run, tmp_path):
    run.write_text(as_lines(AUDIT[:2]) + "broken\n")
    result = convert(run, "--to", "html", "--out", tmp_path / "out.html")
    assert result.exit_code == 2
    assert f"{run}:3: this line is no JSON" in result.stderr
    assert not (tmp_path / "out.html").exists()


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path):
    result = convert(tmp_path / "none.jsonl", "--to", "json")
    assert result.exit_code == 2
    assert "cannot read" in result.stderr
