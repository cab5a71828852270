"""Runs are kept at once, by several processes, and one file's are added to another's."""

import json
from concurrent.futures import ThreadPoolExecutor

from tests.check.controls import Played
from tests.check.kept import PARTS, as_text, drop, is_there, keep, merge, read_data


def played(seed, scenario=None, **more):
    verdict = None if scenario is None else "leak"
    ended = {"one-word": "no evidence", "boundary": "leak"} if scenario else {}
    return Played(seed, scenario, verdict, ("KVF201", "KVF201"), 3, 1.5, ended, **more)


def test_a_run_is_kept_with_what_it_says(tmp_path):
    path = tmp_path / "runs.json"
    keep(path, "fake", "a/b", "boundary", played(4, "boundary"))
    keep(path, "engine", "a/b", "its scenarios", played(0, limit_s=9.0, moved={}))
    assert is_there(path, "fake", "a/b", "boundary", 4)
    assert not is_there(path, "fake", "a/b", "boundary", 5)
    data = read_data(path)
    assert data["fake"]["a/b"]["boundary"]["4"] == {
        "found": "boundary",
        "verdict": "leak",
        "codes": ["KVF201"],
        "requests": 3,
        "seconds": 1.5,
        "verdicts": {"boundary": "leak"},
    }
    assert data["engine"]["a/b"]["its scenarios"]["0"]["limit_s"] == 9.0
    assert data["engine"]["a/b"]["its scenarios"]["0"]["moved"] == {}
    assert path.read_text() == as_text(data)


def test_a_run_changes_one_line(tmp_path):
    path = tmp_path / "runs.json"
    for seed in (0, 1):
        keep(path, "fake", "a/b", "boundary", played(seed))
        keep(path, "fake", "a/b", "quick", played(seed))
    before = path.read_text().splitlines()
    keep(path, "fake", "a/b", "quick", played(2))
    after = path.read_text().splitlines()
    assert len(after) == len(before)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_what_several_keep_at_once_is_all_there(tmp_path):
    path = tmp_path / "runs.json"
    with ThreadPoolExecutor(8) as several:
        list(several.map(lambda seed: keep(path, "fake", "a/b", "quick", played(seed)), range(24)))
    assert len(read_data(path)["fake"]["a/b"]["quick"]) == 24


def test_merging_adds_what_is_not_there_and_changes_nothing(tmp_path):
    mine, other = tmp_path / "mine.json", tmp_path / "other.json"
    keep(mine, "fake", "a/b", "quick", played(0))
    keep(other, "fake", "a/b", "quick", played(0, "boundary"))
    keep(other, "fake", "a/b", "quick", played(1))
    keep(other, "engine", "c/d", "its scenarios", played(0))
    assert merge(mine, other) == 2
    data = read_data(mine)
    assert data["fake"]["a/b"]["quick"]["0"]["found"] is None
    assert sorted(data["fake"]["a/b"]["quick"]) == ["0", "1"]
    assert data["engine"]["c/d"]
    assert merge(mine, other) == 0


def test_a_part_is_dropped_alone(tmp_path):
    path = tmp_path / "runs.json"
    keep(path, "fake", "a/b", "quick", played(0))
    keep(path, "engine", "a/b", "its scenarios", played(0))
    drop(path, "fake")
    assert read_data(path)["fake"] == {}
    assert read_data(path)["engine"]


def test_without_a_file_every_part_is_empty(tmp_path):
    assert read_data(tmp_path / "none.json") == {part: {} for part in PARTS}
    assert json.loads(as_text(read_data(tmp_path / "none.json")))["fake"] == {}
