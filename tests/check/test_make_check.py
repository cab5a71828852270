"""docs/make_check.py: who plays what, what is kept, and what the page says of runs that found nothing."""

import argparse
import importlib.util
import sys

import pytest
from tests.check.controls import Played
from tests.check.engine_sizes import BLIND, faults_outside
from tests.check.kept import read_data
from tests.house.source import ROOT


@pytest.fixture
def script(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("make_check", ROOT / "docs" / "make_check.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_check", module)  # its dataclass looks itself up
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DATA", tmp_path / "runs.json")
    return module


def tasks(script, made, runs=6, part="engine"):
    def run(seed):
        made.append(seed)
        return Played(seed, None, None, (), 1, 1.0, {})

    return [script.Task(part, "a/b", "quick", seed, run) for seed in range(runs)]


def test_two_shares_are_the_whole_and_nothing_is_made_twice(script, capsys):
    first, second, third = [], [], []
    script.measure(tasks(script, first), (0, 2), None)
    script.measure(tasks(script, second), (1, 2), None)
    script.measure(tasks(script, third), (0, 1), None)
    assert (first, second, third) == ([0, 2, 4], [1, 3, 5], [])
    assert len(read_data(script.DATA)["engine"]["a/b"]["quick"]) == 6
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_a_run_that_came_to_nothing_is_said_and_not_kept(script, capsys):
    def fails(seed):
        raise RuntimeError("nobody answered")

    script.measure([script.Task("engine", "a/b", "quick", 0, fails)], (0, 1), None)
    assert not script.DATA.exists()
    assert "was not measured: nobody answered" in capsys.readouterr().err
    with pytest.raises(RuntimeError):
        script.measure([script.Task("fake", "a/b", "quick", 0, fails)], (0, 1), None)


def test_nothing_begins_when_time_is_over(script):
    made = []
    script.measure(tasks(script, made), (0, 1), 0.0)
    assert made == []


def test_a_share_is_one_of_so_many(script):
    assert script.share_of("2/3") == (1, 3)
    for wrong in ("0/2", "3/2", "1", "a/b", "-1/2"):
        with pytest.raises(argparse.ArgumentTypeError):
            script.share_of(wrong)


def test_what_is_known_of_runs_that_found_nothing(script):
    none = {"found": None}
    assert script.why_not({}) == "not measured yet"
    calm = script.why_not({"0": {**none, "moved": {}}})
    assert calm == "not found; no trace left the protocol's path"
    late = script.why_not({"0": {**none, "limit_s": 300.0, "moved": {}}, "1": {**none, "moved": {"law": 2}}})
    assert late == "not found within 300 s; 1 of 2 traces left the protocol's path (law)"


def test_the_page_names_every_fault_that_real_nodes_get_to(script):
    text = script.page(read_data(script.DATA)).partition("## On real processes")[2]
    for name in faults_outside():
        assert f"| `{name}` |" in text
    for name, why in BLIND.items():
        assert f"- `{name}`: {why}." in text
