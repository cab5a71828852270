"""The report: one file, whole, with every act, its figures and its drawings, and nothing from outside."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from kvfence.replay.acts import Act, Fence, Leak, Played
from kvfence.replay.markup import VOID
from kvfence.replay.report import report_of, write_report
from kvfence.replay.scene import Play
from kvfence.replay.secret import Secret
from tests.replay.samples import LEAKING_TRIAL, PLAY, numbers, played

ABSOLUTE = re.compile(r"(?:src|href)=\"(?!#)|https?:|url\(")


class Checker(HTMLParser):
    """Elements close in the order in which they were opened; ids are unique."""

    def __init__(self):
        super().__init__()
        self.open, self.ids = [], []

    def handle_starttag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report():
    return report_of(played())


def text_of(report, act):
    section = report.split(f'id="act-{act.value}"')[1].split("</section>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section))


def test_it_is_well_formed_and_needs_nothing_but_itself(report):
    checker = Checker()
    checker.feed(report)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert not ABSOLUTE.search(report)
    assert report.startswith("<!doctype html>")


def test_every_act_has_its_section_and_its_verdict(report):
    for act in Act:
        assert f'href="#act-{act.value}"' in report
        assert f"Act {act.value}: {act.title}" in report
    assert report.count("verdict good") == len(Act)
    missed = replace(played(), leak=Leak(PLAY, replace(LEAKING_TRIAL, sent_tokens=61)))
    assert report_of(missed).count("verdict bad") == 1


def test_the_numbers(report):
    words = text_of(report, Act.NUMBERS)
    for figure in numbers().figures:
        assert f"{figure.what} {figure.computed}" in words
    assert "31 of 32 slots (96.9 %) are A's" in words
    assert "64 tokens is larger than the prefill pool of 40" in words
    assert 'id="context"' in report
    assert '<option value="4" selected="">' in report


def test_the_leak_marks_as_words_and_states_what_b_saw(report):
    words = text_of(report, Act.LEAK)
    for word in ("zanzibar", "quokka", "marmalade"):
        assert f"<mark>{word}</mark>" in report
    assert "HTTP 200, finish reason length" in words
    assert "60; sent were 60" in words
    assert "after 0.25 s" in words
    assert "3.00 s, by the pace" in words
    assert "Decode read 11 slots in 3 pages for B: 6 hold A's bytes" in words
    assert "about &lt;a river&gt;" in words, "prompts are text"


def test_a_guess_is_told_by_what_came_from_the_cache():
    guess = Play.of("salt-dropped/domain-ignored", Secret())
    leak = Leak(guess, replace(LEAKING_TRIAL, reused_tokens=784, page_map=None))
    words = text_of(report_of(Played(guess, leak=leak)), Act.LEAK)
    assert "cached tokens 784, from pages that were computed for tenant A" in words
    assert "no page map: the pages that were shared are prefill's" in words
    assert "by the pace" not in words


def test_the_fence_has_a_line_a_layer(report):
    words = text_of(report, Act.FENCE)
    assert "admission stopped HTTP 400 context_length_exceeded context_length_exceeded 0" in words
    assert "manifest stopped HTTP 500 integrity manifest_tokens 0" in words
    assert "no page map: decode gave B no page" in words
    through = replace(played(), fence=Fence(PLAY, (replace(LEAKING_TRIAL, alone=None),)))
    assert "none NOT stopped" in text_of(report_of(through), Act.FENCE)
    assert "No layer of a running deployment" in report_of(replace(played(), fence=Fence(PLAY, ())))


def test_the_fix_tells_moment_by_moment(report):
    words = text_of(report, Act.FIX)
    assert "time has passed, and has freed nothing 2.1 80 60 10" in words
    assert "HTTP 400 at most 1328 tokens" in words
    assert "HTTP 200, first token after 2.50 s; A's words in the answer: none; A's slots read: 0" in words
    assert "Decode read 6 slots in 2 pages for B: 0 hold A's bytes, 6 are B's own" in words
    assert (
        "Pages that landed after the client had left: 2; the bound is 4 (batches of 2 pages); of 79 pages, 67"
        in words
    )


def test_an_act_that_was_not_played_is_not_there():
    report = report_of(Played(PLAY, numbers=numbers()))
    assert 'id="act-1"' in report
    assert 'id="act-2"' not in report


def test_the_file_is_written_whole(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("an older one")
    write_report(path, Played(PLAY, numbers=numbers()))
    assert path.read_text(encoding="utf-8") == report_of(Played(PLAY, numbers=numbers()))
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
