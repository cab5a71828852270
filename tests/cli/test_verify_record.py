"""The file of outcomes: what is kept of a search, and what is no such file."""

from dataclasses import replace

import pytest

from kvfence.cli.verify_record import keep, kept, outcome
from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.errors import OperatorError
from kvfence.verification import SCOPES, search

SMALL = SCOPES["late-writer"]


@pytest.fixture(scope="module")
def report():
    return search(SMALL, CORRECT, ways_home=True)


def test_what_a_scope_came_to_is_kept(report):
    said = outcome(report)
    assert said["states"] == report.states
    assert said["ended"] == "closed"
    assert (said["stranded"], said["livelock"]) == (0, False)
    assert "walked" not in said


def test_a_scope_that_does_not_close_keeps_its_walks():
    said = outcome(search(replace(SMALL, depth=5), CORRECT, ways_home=True))
    assert said["ended"] == "depth"
    assert said["walked"] == said["last_layer"] > 0
    assert said["lost"] is False
    assert "stranded" not in said


def test_a_later_search_takes_the_place_of_an_earlier_one(tmp_path, report):
    path = tmp_path / "record.json"
    assert kept(path) == {}
    keep(path, replace(report, seconds=1.0))
    keep(path, replace(report, seconds=2.0, scope=replace(SMALL, name="other")))
    keep(path, replace(report, seconds=3.0))
    assert {name: one["seconds"] for name, one in kept(path).items()} == {"late-writer": 3.0, "other": 2.0}


@pytest.mark.parametrize("text", ["no JSON", "[1]"])
def test_a_file_of_another_kind_is_left_alone(tmp_path, report, text):
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(OperatorError, match="no record"):
        keep(path, report)
    assert path.read_text() == text
