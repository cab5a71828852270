"""Whatever a server puts into any text of any event: no format lets it act.

Every text field of every kind of event is filled with the same attack, in turn and all at once; what comes
out is parsed as its reader would parse it, and nothing of the attack is anything but words.
"""

import io
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import msgspec
import pytest
from rich.console import Console

from kvfence.report import (
    Answered,
    CapabilityLearned,
    Cost,
    Figure,
    FindingMade,
    NodeRead,
    Noted,
    PairRead,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
    Verdict,
)
from kvfence.report.convert import Options, render
from kvfence.report.formats import Format
from kvfence.report.jsonl import parse_events
from kvfence.report.terminal import print_summary
from kvfence.report.terminal_live import LiveView
from tests.report.html_checker import Checker
from tests.report.samples import unread

ATTACKS = {
    "script": "</script><script>alert(1)</script>",
    "image": "<img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" x=\'y\' `',
    "style": "</style><style>*{display:none}</style><!--",
    "cdata": "]]><failure message='x'/><![CDATA[",
    "entity": "&lt;script&gt; &#0; &bogus; %s {0}",
    "markup": "[red]x[/red] [link=http://evil]y[/link] [/]",
    "ansi": "\x1b[31m\x1b]0;title\x07\x1b[2J\x9b31m",
    "control": "a\x00b\x01c\x0bd\x0c\x1f\x7f\ufffe\uffff",
    "lines": "a\nb\r\nc\u2028d\u2029e\x85f",
    "bidi": "\u202eabc\u2066def\u2069\u200f",
    "long": "A" * 200_000,
}
ELEMENTS = {"script", "img", "iframe", "object", "embed", "form", "input", "base"}
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200e\u200f\ufffe\uffff]"
)


def run_of(text: str) -> tuple:
    """A run in which a server has said this wherever it can say something."""
    finding = unread(
        about=text, what=text, subject_key=text, evidence={text: text}, control=text, rival=text, fix=text,
        replay=text, smallest_effect=text, references=(text, f"https://h/{text}", f"javascript:{text}"),
    )  # fmt: skip
    return (
        RunStarted(tool="check", version=text, run=text, started=text, targets=(text,), profile=text),
        CapabilityLearned(name=text, value=text, how=text),
        NodeRead(
            node=text, engine=text, engine_version=text, role=text, verdict=text, why=text,
            figures={text: Figure(value=text, read_from=text)},
        ),
        PairRead(prefill=text, decode=text),
        ScenarioStarted(scenario=text, hazard=text, cost=Cost(requests=1)),
        Answered(scenario=text, request=1, tenant=text, mark=text, status=200, failure=text, finish=text),
        Answered(scenario="boundary", request=2, tenant=text, mark="probe", prompt_tokens=9, ttft_s=1.0),
        FindingMade(finding=finding, scenario=text),
        FindingMade(finding=unread(what=text), accepted=text),
        ScenarioEnded(
            scenario=text, verdict=Verdict.SUSPECT, why=text, classes=(text,), control=text, smallest_effect=text
        ),
        ScenarioEnded(scenario="other", verdict=Verdict.NOT_TESTED, why=text),
        Noted(text=text, is_warning=True),
        RunEnded(exit_code=1, why=text),
    )  # fmt: skip


class Seen(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.comments = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_comment(self, data):
        self.comments += 1


@pytest.mark.parametrize("name", ATTACKS)
def test_a_page_holds_no_element_and_no_attribute_of_a_server(name):
    page = render(run_of(ATTACKS[name]), Format.HTML)
    seen, calm = Seen(page), Seen(render(run_of("calm"), Format.HTML))
    assert seen.tags == calm.tags
    assert not seen.tags & ELEMENTS
    assert {attribute for attribute, _ in seen.attributes} == {attribute for attribute, _ in calm.attributes}
    links = [value for attribute, value in seen.attributes if attribute in {"href", "src"}]
    assert all(link.startswith(("#", "https://", "http://")) for link in links)
    assert seen.comments == calm.comments
    assert FORBIDDEN.findall(page) == []
    checker = Checker()
    checker.feed(page)
    assert checker.open == []


@pytest.mark.parametrize("name", ATTACKS)
def test_junit_is_xml_with_the_same_elements(name):
    def shape(text: str) -> list[tuple[str, tuple[str, ...]]]:
        root = ET.fromstring(render(run_of(text), Format.JUNIT))
        return [(one.tag, tuple(sorted(one.attrib))) for one in root.iter()]

    assert shape(ATTACKS[name]) == shape("calm")
    assert FORBIDDEN.findall(render(run_of(ATTACKS[name]), Format.JUNIT)) == []


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("to", [Format.JSON, Format.SARIF])
def test_json_says_the_words_and_nothing_else(name, to):
    text = render(run_of(ATTACKS[name]), to, Options(source="run.jsonl"))
    assert json.loads(text)
    assert [line for line in text.split("\n") if re.search("[\x00-\x1f]", line)] == []


@pytest.mark.parametrize("name", ATTACKS)
def test_json_lines_are_one_line_an_event_and_read_back_the_same(name):
    events = run_of(ATTACKS[name])
    written = b"\n".join(msgspec.json.encode(event) for event in events) + b"\n"
    assert written.count(b"\n") == len(events)
    assert parse_events(written, "here").events == events


@pytest.mark.parametrize("name", ATTACKS)
def test_a_terminal_is_not_spoken_to_by_a_server(name):
    """Neither escape codes nor the markup of the library that draws act; colours are our own alone."""
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=False, color_system=None)
    view = LiveView(console)
    for event in run_of(ATTACKS[name]):
        view.show(event)
    print_summary(console, run_of(ATTACKS[name]))
    assert FORBIDDEN.findall(out.getvalue()) == []
    if name == "markup":
        assert "[red]x[/red]" in out.getvalue(), "it is shown as it was said"


def test_what_a_terminal_with_colours_is_sent_is_ours_alone():
    def codes(text: str) -> set[str]:
        out = io.StringIO()
        console = Console(
            file=out, width=100, force_terminal=True, color_system="standard", legacy_windows=False
        )
        print_summary(console, run_of(text))
        return set(re.findall("\x1b[^m]*m?", out.getvalue()))

    ours = codes("calm")
    for attack in ("markup", "ansi", "control"):
        assert codes(ATTACKS[attack]) <= ours, attack


def test_the_attacks_would_act_if_nothing_stopped_them():
    assert Seen(ATTACKS["script"]).tags == {"script"}
    assert FORBIDDEN.search(ATTACKS["control"])
    with pytest.raises(ET.ParseError):
        ET.fromstring(f"<a>{ATTACKS['control']}</a>")
