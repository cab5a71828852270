"""Pages are parsed once, carefully: what is no plain number is no figure."""

import pytest

from kvfence.audit import page as page_module
from kvfence.audit.page import (
    decimal_text,
    field,
    flag,
    has_fields,
    items,
    least,
    page_of,
    total,
    whole,
    whole_text,
    word,
)


def test_json_is_data_and_text_is_samples():
    assert page_of("/a", "GET /a", b'{"a": 1}').data == {"a": 1}
    page = page_of("/m", "GET /m", b'# HELP a b\na{x="1",y="q\\"r"} 2.5\nb 3 1700000000\nnonsense\nc x\n')
    assert [(sample.name, sample.value) for sample in page.samples] == [("a", 2.5), ("b", 3.0)]
    assert page.samples[0].labels == {"x": "1", "y": 'q\\"r'}
    assert page.named("a") == "GET /m a"
    assert page.has_metrics_of("a") and not page.has_metrics_of("c")
    assert [sample.value for sample in page.of_name("b")] == [3.0]


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"[" * 100_000, b'{"a":', b"<html></html>"])
def test_what_cannot_be_parsed_is_a_page_without_data(body):
    page = page_of(None, "x", body)
    assert (page.data, page.samples) == (None, ())


def test_samples_are_bounded(monkeypatch):
    monkeypatch.setattr(page_module, "SAMPLES_MAX", 9)
    assert len(page_of(None, "x", b"a 1\n" * 14).samples) == 9


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (7, 7),
        (7.0, 7),
        (0, None),
        (-1, None),
        (7.5, None),
        (True, None),
        ("7", None),
        (None, None),
        (float("nan"), None),
        (float("inf"), None),
        (1 << 60, None),
    ],
)
def test_whole_numbers(value, wanted):
    assert whole(value) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7", 7),
        ("1,234,567", 1234567),
        ("1,23", None),
        ("1.0", None),
        ("-1", None),
        ("", None),
        ("9" * 16, None),
        ("٣", None),
        (7, None),
        ("0", None),
        ("7k", None),
        ("0,123", None),
    ],
)
def test_whole_numbers_in_text(text, wanted):
    assert whole_text(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.47086", 0.47086),
        ("1,000.50", 1000.5),
        ("3", 3.0),
        (",1", None),
        ("1e3", None),
        ("nan", None),
        ("0,65", None),
        ("0,650", None),
        ("10,00", None),
        (1.0, None),
    ],
)
def test_decimals_in_text(text, wanted):
    assert decimal_text(text) == wanted


def test_counters_are_summed_where_they_are_numbers():
    assert total([1.0, 2.0]) == 3
    assert [total([one]) for one in (float("nan"), float("inf"), -1.0, 1e300)] == [None] * 4


def test_words_and_flags():
    assert [word(value) for value in ("a b", "", "x" * 101, "a\x1b", 7)] == ["a b", None, None, None, None]
    assert [flag(value) for value in (True, False, 1, "true")] == [True, False, None, None]


def test_looks_into_objects():
    assert field({"a": {"b": 1}}, "a", "b") == 1
    assert field({"a": [1]}, "a", "b") is None
    assert items([1, 2]) == (1, 2) and items({"a": 1}) == ()
    assert has_fields({"a": None}, "a") and not has_fields({"a": 1}, "a", "b") and not has_fields([], "a")
    assert least([None, 3, 2]) == 2 and least([None]) is None


def test_a_hostile_line_takes_no_time_to_speak_of():
    """A word of a million letters is looked at once, not once a letter."""
    page = page_of(None, "x", b"a{" + b"b" * 1_000_000 + b"} 1\n" + b'{"' + b"}" * 1_000_000)
    assert [sample.labels for sample in page.samples] == [{}]
