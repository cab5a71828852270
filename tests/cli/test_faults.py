"""`kvfence faults`: the table, one fault explained, the same as JSON, and what is not loaded for it."""

import json
import subprocess
import sys

from typer.testing import CliRunner

from kvfence.cli.app import app
from kvfence.cli.faults_view import how_to_run
from kvfence.faults import CATALOGUE

HEAVY = ("torch", "numpy", "zmq", "starlette", "transformers")

EXPLAINED = """\
unscrubbed-reuse/dirty-unused-slots: what is read before it is written is handed on without clearing

A partly filled page leaves the prefill node with whatever stood in the rest of it.
Bytes of an earlier prompt reach a decode node in the page of another tenant.

decisions that it gets wrong
  zeroes_unused_slots

caught by
  seal, explorer, simulator

runs on
  real nodes, the simulator and the explorer

stands for, as reported there
  KVI-111 vLLM #56524: recurrent state blocks reused without zeroing \
(https://github.com/vllm-project/vllm/pull/56524)
  KVI-112 vllm-mlx #384/#385: trimmed prefix entry keeps the old tail; some layers read it \
(https://github.com/waybarrios/vllm-mlx/pull/385)

to see it
  kvfence simulate --fault unscrubbed-reuse/dirty-unused-slots
  kvfence verify --scope unused-slots --fault unscrubbed-reuse/dirty-unused-slots
  kvfence serve --unsafe-fault unscrubbed-reuse/dirty-unused-slots --unsafe-without seal \
--i-understand-this-leaks-data
"""

LISTED = """\
 fault                                         runs on  caught by
 rejected-continues/incident                   both     manifest, seal, guard, explorer, simulator, outside check
"""


def invoke(*words: str):
    return CliRunner().invoke(app, ["faults", *words], env={"COLUMNS": "200", "TERM": "dumb"})


def test_one_is_explained():
    result = invoke("show", "unscrubbed-reuse/dirty-unused-slots")
    assert result.exit_code == 0
    assert result.output == EXPLAINED


def test_a_slip_that_nobody_reported_says_so():
    assert "no public bug: a slip" in invoke("show", "transfer-outlives-pages/free-on-illegal").output


def test_all_are_listed_in_a_table():
    result = invoke()
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.rstrip() for line in lines[:2]] == LISTED.splitlines()
    assert [line.split()[0] for line in lines[1 : len(CATALOGUE) + 1]] == list(CATALOGUE)
    assert lines[len(CATALOGUE) + 1].startswith("no offload-mixup: ")


def test_the_same_as_json():
    data = json.loads(invoke("--json").output)
    assert [fault["name"] for fault in data["faults"]] == list(CATALOGUE)
    assert list(data["classes_without"]) == ["offload-mixup"]
    (one,) = [fault for fault in data["faults"] if fault["name"] == "key-collision/short-key"]
    assert json.loads(invoke("show", "--json", "key-collision/short-key").output) == one
    assert one["class"] == "key-collision"
    assert one["decisions"] == ["prefix_digest", "compares_prefix"]
    assert one["bugs"][1]["ref"] == "#32404"


def test_a_name_that_is_none_is_the_operators_error():
    result = invoke("show", "key-collision/shortkey")
    assert result.exit_code == 2
    assert "did you mean key-collision/short-key?" in result.output


def test_how_to_run_one_leaves_out_the_layers_that_would_stop_it():
    assert how_to_run(CATALOGUE["rejected-continues/incident"])[-1] == (
        "kvfence serve --pool-tokens 2048 --unsafe-fault rejected-continues/incident --unsafe-without manifest "
        "--unsafe-without seal --unsafe-without guard --i-understand-this-leaks-data"
    )
    assert "--prefill-pool-tokens" in how_to_run(CATALOGUE["rejected-continues/split-state"])[-1]
    assert not any("serve" in line for line in how_to_run(CATALOGUE["stale-reference/pool-adopted"]))


def test_it_is_explored_where_it_is_found_and_simulated_without_what_hides_it():
    assert how_to_run(CATALOGUE["row-mixup/shifted-tables"])[:2] == [
        "kvfence simulate --fault row-mixup/shifted-tables",
        "kvfence verify --scope growth --fault row-mixup/shifted-tables",
    ]
    split = how_to_run(CATALOGUE["rejected-continues/split-state"])
    assert split[0] == "kvfence simulate --fault rejected-continues/split-state --without admission"
    assert not any("kvfence verify" in line for line in split)


def loaded_by(program: str) -> set[str]:
    """Modules that a fresh process has after the program."""
    words = [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"]
    return set(subprocess.run(words, check=True, capture_output=True, text=True).stdout.split())


def test_nothing_heavy_is_loaded_to_show_the_catalogue():
    loaded = loaded_by(
        "from typer.testing import CliRunner\n"
        "from kvfence.cli.app import app\n"
        "assert CliRunner().invoke(app, ['faults']).exit_code == 0"
    )
    assert "kvfence.faults" in loaded
    assert not loaded & set(HEAVY)
