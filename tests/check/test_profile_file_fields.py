"""Readers of values: what each takes, and what it says of the rest."""

import pytest

from kvfence.check.profile_file_fields import WrongError, amount, boolean, choice, choices, count, text, texts


@pytest.mark.parametrize(
    ("reader", "given", "found"),
    [
        (text, "a", "a"),
        (texts, ["a", "b"], ("a", "b")),
        (boolean, False, False),
        (count, 3, 3),
        (amount, 3, 3.0),
        (amount, 0.5, 0.5),
        (choice("a", "b"), "b", "b"),
        (choices("a", "b"), [], ()),
        (choices("a", "b"), ["b"], ("b",)),
    ],
)
def test_what_is_taken(reader, given, found):
    assert reader(given) == found


@pytest.mark.parametrize(
    ("reader", "given"),
    [
        (text, " "),
        (text, 1),
        (texts, "a"),
        (texts, []),
        (texts, ["a", 1]),
        (boolean, 1),
        (count, True),
        (count, 1.5),
        (amount, True),
        (amount, float("inf")),
        (amount, -1),
        (choice("a"), ["a"]),
        (choices("a"), "a"),
    ],
)
def test_what_is_not(reader, given):
    with pytest.raises(WrongError):
        reader(given)
