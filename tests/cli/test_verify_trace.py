"""`kvfence verify --trace`: what is wrong is told with its line, and the exit code says that something is."""

import json
import subprocess
import sys

import pytest
from tests.verification.recorded import Recorded
from typer.testing import CliRunner

from kvfence.cli.app import app

HEAVY = ("torch", "numpy", "zmq", "structlog")


@pytest.fixture
def lines():
    rig = Recorded()
    rig.submit(10, 4)
    rig.run()
    return rig.stop()


def verify(tmp_path, lines):
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return CliRunner().invoke(app, ["verify", "--trace", str(path)])


def test_a_good_trace_ends_with_0(tmp_path, lines):
    done = verify(tmp_path, lines)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "The trace conforms: it is a path of the tables."


def test_a_changed_trace_ends_with_1_and_names_the_line(tmp_path, lines):
    at = next(i for i, line in enumerate(lines) if line.get("event") == "Submitted")
    lines[at]["commands"] = []
    done = verify(tmp_path, lines)
    assert done.exit_code == 1
    assert f"run.jsonl:{at + 1}: r: core: the core's commands are others" in done.output
    assert "['SetTimer'" in done.output  # Brackets are no markup.


@pytest.mark.parametrize("role", ["router", "prefill", "decode"])
def test_a_trace_without_one_of_its_nodes_is_inconclusive(tmp_path, lines, role):
    done = verify(tmp_path, [line for line in lines if line.get("role") != role])
    assert done.exit_code == 5, done.output
    assert "no trace of " in done.output
    assert "not every node that spoke is in it" in done.output


def test_a_trace_of_nobody_is_none(tmp_path):
    done = verify(tmp_path, [])
    assert done.exit_code == 1
    assert "no node has written a line" in done.output


def test_a_file_that_is_not_there_ends_with_2(tmp_path):
    done = CliRunner().invoke(app, ["verify", "--trace", str(tmp_path / "nowhere")])
    assert done.exit_code == 2


def test_checking_a_trace_needs_nothing_heavy():
    code = f"import sys, kvfence.cli.verify_view; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
