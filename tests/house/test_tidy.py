"""Files and functions are short, and the check of it can fail."""

from tests.house.source import modules, sample
from tests.house.tidy import (
    FILE_LINES_MAX,
    FUNCTION_LINES_MAX,
    LONG_FILES,
    LONG_FUNCTIONS,
    file_lengths,
    function_lengths,
    too_long,
)


def test_functions_are_short():
    lengths = dict(pair for module in modules() for pair in function_lengths(module))
    # A function stays under the bound, a file at it: hence one less.
    assert list(too_long(lengths, FUNCTION_LINES_MAX - 1, LONG_FUNCTIONS)) == []


def test_files_are_short():
    lengths = dict(pair for module in modules() for pair in file_lengths(module))
    assert list(too_long(lengths, FILE_LINES_MAX, LONG_FILES)) == []


def test_functions_are_measured_wherever_they_stand():
    text = "class A:\n    def f(self):\n        def g():\n            pass\n        return g\nasync def h():\n    pass\n"
    assert dict(function_lengths(sample(text, "kv/x.py"))) == {
        "kv/x.py:A.f": 4,
        "kv/x.py:A.f.g": 2,
        "kv/x.py:h": 2,
    }
    assert dict(file_lengths(sample(text, "kv/x.py"))) == {"kv/x.py": 7}


def test_what_is_too_long_is_found():
    assert list(too_long({"a": 4}, 4, {})) == []
    (fault,) = too_long({"a": 5}, 4, {})
    assert "5 lines, more than 4" in fault


def test_the_ratchet_only_turns_one_way():
    assert list(too_long({"a": 90}, 40, {"a": 90})) == []
    assert list(too_long({"a": 71}, 40, {"a": 90})) == [], "a few lines less are no reason to edit the table"
    assert "more than 90" in next(too_long({"a": 91}, 40, {"a": 90}))
    assert "lower its ratchet" in next(too_long({"a": 70}, 40, {"a": 90}))
    assert "take it out" in next(too_long({"a": 40}, 40, {"a": 90}))
    assert "take it out" in next(too_long({}, 40, {"a": 90}))
