"""`kvfence verify`: what it says of a scope, and its exit codes."""

import re

import pytest
from typer.testing import CliRunner

from kvfence.cli.app import app
from kvfence.verification import SCOPES

FAULT = "transfer-outlives-pages/free-on-abort"


def run(*arguments):
    return CliRunner().invoke(app, ["verify", *arguments])


def scrubbed(text):
    """Without what differs from run to run."""
    return re.sub(r"[\d,.]+(?= (s,|states a second|bytes a state|MiB))", "N", text)


def test_a_scope_that_closes_without_a_finding_ends_well():
    done = run("--scope", "late-writer")
    assert done.exit_code == 0, done.output
    assert scrubbed(done.output).split("\n")[-6:-1] == [
        "scope late-writer: one page; the writer's deadline passes too early",
        "closed: every state that can be reached was visited; depth 27",
        "583 distinct states, 1,248 transitions, 40 of 196 rows taken",
        "N s, N states a second; N bytes a state kept, N MiB at most",
        "from each of them there is a way home without more weather",
    ]


def test_a_fault_ends_with_its_shortest_run():
    done = run("--scope", "leave", "--fault", FAULT)
    assert done.exit_code == 1
    assert "the client of request 1 leaves" in done.output
    assert "!! late write, decode0" in done.output
    assert "found what must never happen, in the fewest steps" in done.output


def test_it_is_drawn_into_a_file_too(tmp_path):
    svg = tmp_path / "found.svg"
    assert run("--scope", "leave", "--fault", FAULT, "--svg", str(svg)).exit_code == 1
    assert svg.read_text().startswith("<svg")


def test_what_never_comes_home_is_found_where_the_scope_is_small_enough():
    done = run("--scope", "smoke", "--fault", "transfer-outlives-pages/close-asked-once")
    assert done.exit_code == 1
    assert "not home" in done.output


def test_a_limit_is_inconclusive():
    done = run("--scope", "leave", "--max-states", "50")
    assert done.exit_code == 5
    assert "not closed: stopped at --max-states" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scope", "smok"), "did you mean smoke"),
        (("--jobs", "0"), "must be above zero"),
        (("--fault", "nothing/such"), "there is no fault"),
        (("--trace", "run.jsonl", "--fault", FAULT), "leave out --fault"),
    ],
    ids=["scope", "jobs", "fault", "trace"],
)
def test_what_cannot_be_done_is_a_usage_error(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_scopes_are_listed():
    done = run("--list")
    assert done.exit_code == 0
    closes = {words[0]: words[1] for line in done.output.splitlines() if len(words := line.split()) > 1}
    assert closes.keys() >= SCOPES.keys()
    assert [closes[name] for name in ("smoke", "one-page", "two-by-two")] == ["yes", "not", "to"]
