"""The terminal: a summary with the worst finding first, and a live view that leaves nothing behind."""

import io

import msgspec
import pytest
from rich.console import Console

from kvfence.report import FindingMade, NodeRead, RunEnded, ScenarioStarted
from kvfence.report.convert import terminal_text
from kvfence.report.terminal import FINDINGS_SHOWN_MAX, print_summary
from kvfence.report.terminal_live import LINES_SHOWN_MAX, LiveView
from tests.report.samples import (
    AUDIT,
    HOSTILE,
    INTERRUPTED,
    LEAKING,
    NOT_TESTED,
    ONE_WORD,
    QUIET,
    answered,
    started,
    unread,
)

LINES_WHILE_IT_RUNS = """\
one-word: no evidence: no evidence in 12 opportunities
CRITICAL KVF203 http://server.example/v1 big-model: a prompt of 1,048,064 tokens was answered in 1.2 s, \
and none of its 5 needles was known
boundary: unread: a prompt below the context was answered unread
MEDIUM KVF207 http://server.example/v1 big-model: 20 of 20 prompts of tenant B had cached tokens after \
tenant A sent them, 0 of 20 without
cross-tenant-reuse: exposed: counters show it
stale-handoff: not tested: needs a server of one's own
warning: one node of two was not seen
"""


def played(events, *, is_terminal: bool) -> str:
    """What a live view writes for these events."""
    out = io.StringIO()
    console = Console(file=out, width=60, force_terminal=is_terminal, color_system=None)
    with LiveView(console) as view:
        for event in events:
            view.show(event)
    return out.getvalue()


def test_the_first_line_of_an_audit_has_both_numbers_however_narrow_the_terminal():
    for columns in (40, 120):
        first = terminal_text(AUDIT, columns).splitlines()[0]
        assert "681,280" in first
        assert "1,048,576" in first


def test_a_colour_is_an_addition_on_a_terminal_alone():
    out = io.StringIO()
    print_summary(Console(file=out, width=120, force_terminal=True, color_system="standard"), AUDIT)
    assert "\x1b[1;31mCRITICAL KVF101" in out.getvalue()
    assert "\x1b" not in terminal_text(AUDIT)


def test_many_findings_are_cut_short_and_counted():
    made = [FindingMade(finding=unread(subject_key=str(number))) for number in range(FINDINGS_SHOWN_MAX + 2)]
    text = terminal_text((started(), *made))
    assert text.count("CRITICAL") == FINDINGS_SHOWN_MAX
    assert "and 2 findings more, in the report files" in text


def test_a_finding_that_is_accepted_is_counted_and_not_shown():
    run = (*QUIET[:-1], FindingMade(finding=unread(), accepted="known"), QUIET[-1])
    text = terminal_text(run)
    assert text.startswith("no evidence in 12 opportunities; 1 accepted by the baseline\n")
    assert "KVF203" not in text


def test_what_is_unknown_is_a_question_mark_and_never_ok():
    text = terminal_text((started("audit"), NodeRead(node="a"), RunEnded(exit_code=5, why="unknown")))
    row = next(line for line in text.splitlines() if line.startswith("a "))
    assert row.split() == ["a", "?", "?", "?", "unknown"]


def test_words_of_a_server_cannot_steer_the_terminal():
    run = (
        started("audit"),
        NodeRead(node=HOSTILE, why="[red]x[/]"),
        FindingMade(finding=unread(what=HOSTILE)),
    )
    text = terminal_text(run)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]x[/]" in text


# ---------------------------------------------------------------- while it runs
def test_where_there_is_no_terminal_verdicts_are_lines():
    assert played(LEAKING, is_terminal=False) == LINES_WHILE_IT_RUNS


def test_an_audit_says_nothing_before_its_summary():
    assert played(AUDIT, is_terminal=False) == ""
    assert "KVF101" not in played(AUDIT, is_terminal=True)


def test_on_a_terminal_progress_is_drawn_and_taken_away():
    text = played(LEAKING, is_terminal=True)
    assert "\x1b[?25l" in text, "drawn"
    assert text.rstrip().endswith("\x1b[2K"), "and erased"


def view_after(events) -> LiveView:
    view = LiveView(Console(file=io.StringIO(), force_terminal=False))
    for event in events:
        view.show(event)
    return view


def progress_after(*events) -> str:
    return view_after(events).progress().plain


def test_progress_counts_requests_and_tokens_against_their_budgets():
    assert progress_after(*LEAKING[:4]) == (
        "one-word: 1 of 4 requests, 31 of 120 tokens; in all 1 of 60 requests, 31 of 1,300,500 tokens, 0 s"
    )


def test_without_a_budget_progress_counts_alone():
    assert progress_after(started()) == "in all 0 requests, 0 tokens, 0 s"
    assert progress_after(started(), *ONE_WORD[:2]) == (
        "one-word: 1 of 4 requests, 31 of 120 tokens; in all 1 request, 31 tokens, 0 s"
    )


def test_a_scenario_that_has_ended_is_not_shown_as_running():
    assert progress_after(started(), *ONE_WORD) == "in all 1 request, 31 tokens, 1 s"


def test_a_lifeline_is_no_request_of_a_scenario():
    lifeline = answered("one-word", 5, "lifeline", prompt_tokens=16)
    assert progress_after(started(), lifeline) == "in all 0 requests, 0 tokens, 5 s"


def test_a_request_whose_count_is_unknown_counts_what_was_sent():
    blind = answered("one-word", 5, "probe", expected_prompt_tokens=100)
    assert progress_after(started(), blind) == "in all 1 request, 100 tokens, 5 s"


def test_a_picture_does_not_grow_for_ever():
    out = io.StringIO()
    with LiveView(Console(file=out, width=200, force_terminal=True, color_system=None)) as view:
        for _ in range(3 * LINES_SHOWN_MAX):
            view.show(NOT_TESTED)
        assert len(view.picture().renderables) == LINES_SHOWN_MAX + 1


def test_lines_that_have_fallen_stand_above_the_progress():
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=True, color_system=None)
    with LiveView(console) as view:
        for event in INTERRUPTED:
            view.show(event)
        console.print(view.picture())
    assert "churn-steady: inconclusive" in out.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_names_of_scenarios_are_made_plain(is_terminal):
    begun = msgspec.structs.replace(ONE_WORD[0], scenario=HOSTILE)
    assert isinstance(begun, ScenarioStarted)
    assert "\u202e" not in played((started(), begun), is_terminal=is_terminal)
