"""Versions compare as versions; builds and branches compare with nothing."""

import pytest

from kvfence.audit.versions import is_below, is_within, parsed


@pytest.mark.parametrize(
    ("text", "below"),
    [
        ("0.5.9", True),
        ("0.5.19", True),
        ("v0.5.21", True),
        ("0.5.22rc1", True),
        ("0.5.22.dev301+g0a1b2c3", True),
        ("0.5.21.post2", True),
        ("0.5.22", False),
        ("0.5.22.post1", False),
        ("0.5.22+cu128", False),
        ("0.5.100", False),
        ("0.5.20-ascend", True),
        ("1.0", False),
        ("main e087e662", None),
        ("b9265", None),
        ("", None),
    ],
)
def test_below(text, below):
    assert is_below(text, "0.5.22") is below


@pytest.mark.parametrize(
    ("text", "within"),
    [("0.15.9", False), ("0.16.0", True), ("0.20.4", True), ("0.21.0", False), ("nightly", None)],
)
def test_within(text, within):
    assert is_within(text, first="0.16.0", fixed="0.21.0") is within


def test_open_bounds():
    assert is_within("0.1", first=None, fixed="0.2") and is_within("9", first="0.2", fixed=None)
    assert parsed(None) is None
