"""Words of others are shown on one line, without anything that steers a terminal."""

import pytest

from kvfence.report.plain import counted, figure, listed, plain


def test_what_is_not_printable_leaves_a_mark():
    assert plain("a\x1b[31mb\u202ec\x00") == "a\ufffd[31mb\ufffdc\ufffd"
    assert plain("ordinary words: ü, 中") == "ordinary words: ü, 中"


def test_lines_become_one():
    assert plain("a\r\n  b\tc") == "a b c"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "unknown"),
        (True, "yes"),
        (False, "no"),
        (1_048_576, "1,048,576"),
        (0.64971, "0.6497"),
        (1234567.0, "1,234,567"),
        ("a\nb", "a b"),
    ],
)
def test_figures_are_readable(value, words):
    assert figure(value) == words


def test_numbers_have_their_nouns():
    assert [counted(number, "node", "nodes") for number in (0, 1, 1_000)] == [
        "0 nodes",
        "1 node",
        "1,000 nodes",
    ]
    assert listed(["a", "b\x07"]) == "a, b\ufffd"
