"""`kvfence verify`: what it says of a scope, and its exit codes."""

import json
import re
from dataclasses import replace

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
    assert scrubbed(done.output).split("\n")[-7:-1] == [
        "scope late-writer: one page; the writer's deadline passes too early",
        "closed: every state that can be reached was visited; depth 27",
        "583 distinct states, 1,248 transitions, 40 of 196 rows taken",
        "N s, N states a second; N bytes a state kept, N MiB at most",
        "from each of them there is a way home without more weather",
        "no free moves go round away from home: no livelock",
    ]


def test_rounds_away_from_home_are_counted_with_what_ends_them():
    done = run("--scope", "smoke")
    assert done.exit_code == 0, done.output
    said = r"\d+ components of free moves go round away from home; fairness ends \d+ of them, a deadline \d+:"
    assert re.search(said + " no livelock$", done.output, re.MULTILINE)


def test_a_scope_that_does_not_close_says_from_where_it_walked_home(monkeypatch):
    monkeypatch.setitem(SCOPES, "smoke", replace(SCOPES["smoke"], depth=12))
    done = run("--scope", "smoke", "--walks", "30")
    assert done.exit_code == 0, done.output
    assert "not closed: searched to the depth that the scope states; depth 12" in done.output
    said = (
        r"^walks of free moves come home from \d+ of the \d+ states of the last layer, in \d+ steps at most$"
    )
    assert re.search(said, done.output, re.MULTILINE)


def test_with_a_layer_off_a_fault_shows_what_the_layer_would_have_caught():
    fault = ("--scope", "pages", "--leaks", "--fault", "false-completion/short-transfer")
    on, off = run(*fault), run(*fault, "--without", "manifest", "--without", "seal", "--without", "guard")
    assert (on.exit_code, off.exit_code) == (0, 1)
    assert "unwritten read" in off.output


def test_a_layer_that_is_off_is_no_finding_by_itself():
    assert run("--scope", "late-writer", "--without", "seal").exit_code == 0


def test_outcomes_are_kept_scope_by_scope(tmp_path):
    record = tmp_path / "record.json"
    for scope in ("late-writer", "limits"):
        assert run("--scope", scope, "--record", str(record)).exit_code == 0
    kept = json.loads(record.read_text())
    assert list(kept) == ["late-writer", "limits"]
    assert kept["late-writer"]["ended"] == "closed"


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
        (("--without", "seals"), "did you mean seal"),
        (("--record", "file", "--fault", FAULT), "the correct protocol"),
        (("--walks", "0"), "must be above zero"),
    ],
    ids=["scope", "jobs", "fault", "trace", "layer", "record", "walks"],
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
    assert [closes[name] for name in ("smoke", "leave-crashes", "two-by-two")] == ["yes", "yes", "to"]
