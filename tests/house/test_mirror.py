"""Every file has its tests, and the check of it can fail."""

from tests.house.mirror import ELSEWHERE, Elsewhere, own_tests, uncovered
from tests.house.source import ROOT, modules

ENTRY = {"tests/kv/test_b.py": Elsewhere(("kv/a.py",), "because")}


def test_every_file_is_covered():
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert list(uncovered({module.place for module in modules()}, tests, ELSEWHERE)) == []


def test_a_file_is_covered_by_its_own_tests_or_those_of_the_concept_it_is_part_of():
    assert own_tests("kv/own_pages.py") == ["tests/kv/test_own_pages.py", "tests/kv/test_own.py"]
    assert own_tests("top.py") == ["tests/test_top.py"]
    assert list(uncovered({"kv/own_pages.py"}, {"tests/kv/test_own.py"}, {})) == []


def test_a_file_without_tests_is_found():
    assert list(uncovered({"kv/a.py", "kv/__init__.py"}, {"tests/kv/test_b.py"}, {})) == [
        "kv/a.py has no test file: write tests/kv/test_a.py"
    ]


def test_a_file_in_the_table_is_covered_there():
    assert list(uncovered({"kv/a.py"}, {"tests/kv/test_b.py"}, ENTRY)) == []


def test_entries_that_are_no_longer_true_are_found():
    both = {"tests/kv/test_a.py", "tests/kv/test_b.py"}
    assert "take it out" in next(uncovered({"kv/a.py"}, both, ENTRY))
    assert "not there" in next(uncovered(set(), both, ENTRY))
    assert "which is not there" in next(uncovered({"kv/a.py"}, set(), ENTRY))
