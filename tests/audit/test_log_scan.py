"""A log is looked through line by line, within bounds; prefixes go, ranks and starts stay."""

import re

import pytest

from kvfence.audit import log_scan
from kvfence.audit.log_scan import Form, Hit, Hits, LogScan, unwrapped, whose_in

SIZE = Form("size", "size=", re.compile(r"size=(?P<n>\d+)"))
START = Form("start", "begin", re.compile(r"begin"), is_mark=False, is_start=True)
ROLE = Form("role", "role=", re.compile(r"role=(?P<role>\w+)"), is_identity=True)
END = Form("end", "over", re.compile(r"over"), is_mark=False, is_end=True)
FORMS = (SIZE, START, ROLE, END)


def scan(*lines):
    one = LogScan("x.log", {"e": FORMS})
    for number, line in enumerate(lines, start=1):
        one.feed(line, number)
    return one


def sizes(hits):
    return [hit.groups["n"] for hit in hits.every("size")]


def test_the_last_line_of_each_rank_is_kept_and_so_are_other_values():
    (hits,) = scan("[x TP0] size=1", "[x TP1] size=2", "[x TP0] size=3").starts("e", FORMS)
    assert [(hit.rank, hit.groups["n"], hit.line) for hit in hits.last("size")] == [
        ("TP0", "3", 3),
        ("TP1", "2", 2),
    ]
    assert sizes(hits) == ["1", "3", "2"]
    assert hits.latest("size").line == 3
    assert (hits.latest("role"), hits.has("role"), hits.marks(FORMS)) == (None, False, 1)


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[2026-05-06 09:15:41 DP7 TP7 EP7] size=1", "DP7/TP7/EP7"),
        ("(EngineCore_DP0 pid=9) size=1", "DP0"),
        ("size=1 on STP0 and TP0x", ""),
        ("x" * 200 + " TP0 size=1", ""),
    ],
)
def test_a_rank_stands_before_the_words(line, rank):
    assert scan(line).starts("e", FORMS)[0].last("size")[0].rank == rank


def test_the_same_value_again_only_moves_its_line():
    (hits,) = scan("size=1", "size=1").starts("e", FORMS)
    assert [(hit.line, hit.groups["n"]) for hit in hits.every("size")] == [(2, "1")]


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(log_scan, "RANKS_MAX", 2)
    (hits,) = scan(*(f"size={n}" for n in range(100))).starts("e", FORMS)
    assert sizes(hits) == [str(n) for n in range(92, 100)]
    assert hits.is_short, "one of many ranks without a name may have been the smallest"
    (hits,) = scan(*(f"TP{n} size=1" for n in range(5))).starts("e", FORMS)
    assert len(hits.last("size")) == 2
    assert hits.is_short
    (hits,) = scan(*(f"TP0 size={n}" for n in range(100))).starts("e", FORMS)
    assert not hits.is_short, "of a rank with a name the last line counts"
    long = Hits("x")
    long.add("size", Hit(1, "", log_scan._groups(re.search(r"(?P<n>.*)", "y" * 999))))
    assert len(long.every("size")[0].groups["n"]) == log_scan.GROUP_CHARACTERS_MAX


def test_the_last_start_of_each_identity_speaks():
    one = scan("begin", "role=a size=1", "begin", "role=b size=2", "begin", "role=a size=3")
    assert [sizes(hits) for hits in one.starts("e", FORMS)] == [["2"], ["3"]]
    assert one.count_of_starts("e") == 3


def test_what_stands_before_the_first_start_is_its_own():
    (hits,) = scan("size=1", "begin", "role=a").starts("e", FORMS)
    assert (sizes(hits), hits.identity(FORMS)) == (["1"], (("role", "a"),))


def test_a_start_whose_place_was_taken_is_told_unless_it_ended():
    one = scan("begin", "role=a size=1", "begin", "role=a size=2", "over", "begin", "role=a size=3")
    assert [sizes(hits) for hits in one.replaced("e", FORMS)] == [["1"]]
    assert scan("begin", "role=a size=1", "begin", "role=b size=2").replaced("e", FORMS) == ()
    assert scan("size=1").replaced("e", FORMS) == ()


def test_what_ended_before_the_first_start_is_a_start_of_its_own():
    named = scan("size=1", "over", "begin", "role=a size=2")
    assert [sizes(hits) for hits in named.starts("e", FORMS)] == [["2"]]
    one = scan("size=1", "over", "begin", "size=2")
    assert [sizes(hits) for hits in one.starts("e", FORMS)] == [["2"]]
    assert one.replaced("e", FORMS) == ()


def test_starts_are_bounded(monkeypatch):
    monkeypatch.setattr(log_scan, "STARTS_MAX", 2)
    one = scan(*(line for n in range(6) for line in ("begin", f"role=r{n}")))
    assert [hits.identity(FORMS)[0][1] for hits in one.starts("e", FORMS)] == ["r4", "r5"]
    assert all(hits.is_short for hits in one.starts("e", FORMS)[1:])


def test_nothing_found_is_one_empty_start():
    (hits,) = scan("hello").starts("e", FORMS)
    assert hits.by_form == {}


@pytest.mark.parametrize(
    ("line", "whose", "text"),
    [
        ("size=1\r\n", None, "size=1"),
        ("[pod/prefill-0/server] size=1", "prefill-0/server", "size=1"),
        ("decode-1  | size=1", "decode-1", "size=1"),
        ('{"log":"size=1\\n","stream":"stdout"}', None, "size=1"),
        ('{"log": broken', None, '{"log": broken'),
        ('{"log":7}', None, '{"log":7}'),
        (
            "slot load_model: id  0 | task -1 | n_ctx = 1",
            None,
            "slot load_model: id  0 | task -1 | n_ctx = 1",
        ),
    ],
)
def test_what_container_tools_write_before_a_line_goes(line, whose, text):
    assert unwrapped(line) == (whose, text)


def test_everybody_in_a_block_is_known_also_who_says_nothing():
    block = b"[pod/a/s] hello\n[pod/b/s] hello\n[pod/a/s] more\nno prefix"
    assert whose_in(block) == {"a/s", "b/s"}
    assert whose_in(b"web-1  | hello\nweb-2  | hello") == {"web-1", "web-2"}
    assert whose_in(b"hello\n[pod/a/s] quoted") == set()


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("size=1,048,576, next", "1,048,576"),
        ("size=1.048.576", "1.048.576"),
        ("size=104_8576", "104_8576"),
        ("size=1M", "1M"),
        ("size=1.5e6", "1.5e6"),
        ("size=7, next=8", "7"),
        ("size=7.", "7"),
    ],
)
def test_the_beginning_of_a_number_is_not_taken_for_the_number(line, number):
    assert sizes(scan(line).starts("e", FORMS)[0]) == [number]
