"""Every sample in every format is what its snapshot says, holds no banned word, and needs no other package."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.report import (
    Cost,
    FindingMade,
    NodeRead,
    Noted,
    RunEnded,
    ScenarioEnded,
    ScenarioStarted,
    Verdict,
)
from kvfence.report.convert import RENDERERS, Options, render, terminal_text
from kvfence.report.exit_codes import OnInconclusive
from kvfence.report.finding import Severity
from kvfence.report.formats import Format
from tests.report.html_checker import Checker
from tests.report.samples import AUDIT, INTERRUPTED, QUIET, RUNS, started, unread
from tests.report.sarif_shape import LOG
from tests.report.snapshots import FOLDER, made

BANNED = re.compile(r"\b(?:safe|safely|compliant|compliance|secure)\b", re.IGNORECASE)
TEXTS = made()


@pytest.mark.parametrize("name", TEXTS)
def test_a_report_is_what_its_snapshot_says(name):
    assert TEXTS[name] == (FOLDER / name).read_text(encoding="utf-8")


def test_no_snapshot_is_left_over():
    assert {file.name for file in FOLDER.iterdir()} == set(TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_no_report_calls_anything_safe(name):
    assert BANNED.findall(TEXTS[name]) == []


@pytest.mark.parametrize("to", Format)
def test_a_run_without_evidence_says_in_how_many_opportunities(to):
    assert "no evidence in 12 opportunities" in render(QUIET, to)


def test_a_banned_word_is_found():
    assert BANNED.search("The server is Safe.")
    assert not BANNED.search("unsafe-fault")


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS, WORDS)
def test_whatever_a_server_says_every_format_stays_whole(one, two, three):
    finding = unread(about=one, what=two, control=three, evidence={one: two}, replay=three)
    events = (
        started(targets=(one,)),
        NodeRead(node=one, engine=two, verdict=three, why=one),
        ScenarioStarted(scenario=two, hazard=three, cost=Cost()),
        FindingMade(finding=finding, scenario=two, accepted=None),
        ScenarioEnded(scenario=two, verdict=Verdict.SUSPECT, why=three),
        Noted(text=one),
        RunEnded(exit_code=1, why=two),
    )
    assert ET.fromstring(render(events, Format.JUNIT)).find("testsuite").get("failures") == "1"
    assert json.loads(render(events, Format.JSON))["findings"][0]["what"] == two
    log = json.loads(render(events, Format.SARIF, Options(source="run.jsonl")))
    assert jsonschema.Draft202012Validator(LOG).is_valid(log)
    lines = render(events, Format.TERMINAL).splitlines()
    assert all(letter.isprintable() for letter in "".join(lines))
    checker = Checker()
    checker.feed(render(events, Format.HTML))
    assert checker.open == []


def test_every_format_has_its_renderer():
    assert set(RENDERERS) == set(Format)


def test_options_reach_junit():
    assert "<skipped" in render(INTERRUPTED, Format.JUNIT)
    fails = Options(on_inconclusive=OnInconclusive.FAIL)
    assert 'failures="1"' in render(INTERRUPTED, Format.JUNIT, fails)
    assert 'failures="1"' in render(AUDIT, Format.JUNIT, Options(fail_on=Severity.CRITICAL))


def test_terminal_text_fits_its_columns():
    for columns in (60, 100):
        lines = terminal_text(RUNS["leaking"], columns).splitlines()
        first = next(number for number, line in enumerate(lines) if line.startswith("scenario"))
        table = lines[first : lines.index("", first)]
        assert max(map(len, table)) <= columns, "tables fit"
        assert lines[0].endswith("none of its 5 needles was known"), "the first line is whole"
    assert "\x1b" not in terminal_text(RUNS["leaking"])


def test_converting_needs_neither_httpx_nor_torch_nor_numpy():
    code = (
        "import sys, kvfence.report.convert as c\n"
        "print(sorted({'httpx', 'torch', 'numpy', 'zmq'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
