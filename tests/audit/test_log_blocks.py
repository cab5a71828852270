"""Blocks of whole lines, and the lines in them that may say something."""

import re

import pytest

from kvfence.audit import log_blocks
from kvfence.audit.log_blocks import Needles, blocks_of
from kvfence.audit.log_scan import Form

SIZE = Form("size", "size=", re.compile(r"size=(?P<n>\d+)"))
MARK = Form("mark", "batch", re.compile(r"batch"))
START = Form("start", "begin", re.compile(r"begin"), is_start=True)
NEEDLES = Needles([(SIZE, MARK), (START,)])


def lines(block, first=1):
    return list(NEEDLES.lines_in(block, first))


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ([b"a\nb", b"c\n", b"d"], [(1, b"a"), (2, b"bc"), (3, b"d")]),
        ([b"a\nb\nc\n"], [(1, b"a\nb\nc")]),
        ([], []),
        ([b"\n\n", b"x"], [(1, b"\n"), (3, b"x")]),
    ],
)
def test_blocks_are_whole_lines_with_the_number_of_the_first(chunks, blocks):
    assert list(blocks_of(chunks)) == blocks


def test_a_long_line_is_cut_between_words_and_counted_once(monkeypatch):
    monkeypatch.setattr(log_blocks, "LINE_BYTES_MAX", 4)
    chunks = [b"a bcdef", b"ghi", b"jk\nxy\n"]
    assert list(blocks_of(chunks)) == [(1, b"a"), (2, b"xy")]
    monkeypatch.setattr(log_blocks, "LINE_BYTES_MAX", 10)
    assert lines(b"size=1 size=2345\nsize=7") == [(1, "size=1"), (2, "size=7")]


def test_the_last_piece_of_a_stream_that_goes_on_is_no_line():
    assert list(blocks_of([b"a\nsize=12"], is_cut_off=lambda: True)) == [(1, b"a")]


def test_only_lines_with_a_needle_are_taken_in_their_order_and_with_their_numbers():
    assert lines(b"x\nsize=2 y\n\nbegin size=\nz\nsize=1", 10) == [
        (11, "size=2 y"),
        (13, "begin size="),
        (15, "size=1"),
    ]
    assert lines(b"nothing\nhere") == []


def test_what_only_marks_an_engine_is_taken_once_a_block():
    assert lines(b"batch 1\nbatch 2\nsize=1\nsize=2") == [(1, "batch 1"), (3, "size=1"), (4, "size=2")]


def test_colours_are_taken_away_before_anything_is_looked_for():
    assert lines(b"\x1b[32msi\x1b[0mze\x1b]8;;x\x07=1") == [(1, "size=1")]


def test_bytes_that_are_no_text_are_replaced():
    assert lines(b"size=1 \xff") == [(1, "size=1 \ufffd")]
