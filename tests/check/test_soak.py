"""The soak's logic, with a runner that starts nothing: who is run, what is kept, what it says at the end."""

from contextlib import contextmanager

import pytest
from tests.check import soak
from tests.check.controls import Played
from tests.check.engine_sizes import HEALTHY
from tests.check.kept import keep, read_data


def played(seed, **verdicts):
    ended = {name.replace("_", "-"): verdict for name, verdict in verdicts.items()}
    return Played(seed, None, None, (), 40, 30.0, ended)


class Runner:
    """Deployments that are started, and runs that are made, as they come."""

    def __init__(self, answer=played):
        self.starts, self.runs, self.answer = [], [], answer

    @contextmanager
    def __call__(self, name):
        self.starts.append(name)

        def check(seed):
            self.runs.append((name, seed))
            return self.answer(seed)

        yield check


def test_every_deployment_gets_its_share_in_turn():
    shares = list(soak.rounds(300))
    assert [name for name, _ in shares[: len(HEALTHY)]] == list(HEALTHY)
    assert sum(len(seeds) for _, seeds in shares) == 300
    assert len({(name, seed) for name, seeds in shares for seed in seeds}) == 300
    assert max(len(seeds) for _, seeds in shares) == soak.AT_ONE_START


@pytest.mark.parametrize("runs", [1, 4, 5, 7, 33])
def test_as_many_runs_as_were_asked_for(runs):
    assert sum(len(seeds) for _, seeds in soak.rounds(runs)) == runs


def test_an_interrupted_soak_goes_on_where_it_was(tmp_path):
    path, first, second = tmp_path / "runs.json", Runner(), Runner()
    soak.soak(7, first, path)
    soak.soak(12, second, path)
    assert len(first.runs) == 7
    assert len(second.runs) == 5
    assert not set(first.runs) & set(second.runs)
    third = Runner()
    soak.soak(12, third, path)
    assert third.starts == []


def test_no_run_begins_when_time_is_over(tmp_path):
    runner = Runner()
    soak.soak(12, runner, tmp_path / "runs.json", until_s=0.0)
    assert runner.starts == []


def test_one_failure_is_tried_again_and_three_in_a_row_end_it(tmp_path, capsys):
    path = tmp_path / "runs.json"

    def fails(seed):
        raise RuntimeError("no answer")

    runner = Runner(fails)
    with pytest.raises(RuntimeError, match="no answer"):
        soak.soak(12, runner, path)
    assert len(runner.runs) == soak.FAILURES_MAX
    assert not path.exists()
    assert "came to nothing: no answer" in capsys.readouterr().err


def test_calm_runs_prove_a_bound(tmp_path, capsys):
    path = tmp_path / "runs.json"
    soak.soak(300, Runner(), path)
    capsys.readouterr()
    assert soak.tell(path) == 0
    said = capsys.readouterr().out
    assert "False verdicts: 0 of 300 runs, at most 1.0% with 95 % confidence." in said
    assert "Suspect: 0 of 300 runs, within the stated 1% of runs" in said


@pytest.mark.parametrize("verdict", ["leak", "unread", "truncated", "hang"])
def test_a_false_verdict_is_counted(tmp_path, capsys, verdict):
    path = tmp_path / "runs.json"
    soak.soak(9, Runner(), path)
    keep(path, soak.PART, "1p1d", soak.COLUMN, played(99, one_word=verdict))
    assert soak.tell(path) == 1
    assert "False verdicts: 1 of 10 runs" in capsys.readouterr().out


def test_too_many_suspects_are_said(tmp_path, capsys):
    path = tmp_path / "runs.json"
    soak.soak(20, Runner(), path)
    for seed in range(100, 103):
        keep(path, soak.PART, "2p2d", soak.COLUMN, played(seed, marker_sweep="suspect"))
    assert soak.tell(path) == 1
    assert "Suspect: 3 of 23 runs, above the stated 1% of runs" in capsys.readouterr().out
    page = "\n".join(soak.said_of_soak(read_data(path)[soak.PART]))
    assert "| 2p2d | 7 | 0 | 3 |" in page


def test_nothing_recorded_is_said():
    assert "Nothing is recorded yet" in "\n".join(soak.said_of_soak({}))
