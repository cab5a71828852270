"""Which exit code a run ends with: each seen, and which goes before which."""

import msgspec
import pytest

from kvfence.report import FindingMade, NodeRead, RunEnded, Severity
from kvfence.report.exit_codes import MEANINGS, ExitCode, OnInconclusive, ending_of, exit_code_of
from tests.report.samples import (
    AUDIT,
    INCONCLUSIVE,
    INTERRUPTED,
    LEAKING,
    NOT_TESTED,
    ONE_WORD,
    QUIET,
    answered,
    reuse,
    started,
    unread,
)


def test_codes_have_their_numbers():
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 130]
    assert list(MEANINGS) == list(ExitCode)


def test_nothing_found_where_something_was_tested_is_clean():
    ending = ending_of(QUIET)
    assert (ending.code, ending.why) == (ExitCode.CLEAN, "no evidence in 12 opportunities")


def test_findings_end_with_1_and_are_counted():
    ending = ending_of(LEAKING)
    assert (ending.code, ending.why) == (ExitCode.FINDINGS, "2 findings of severity medium or worse")
    assert ending_of(LEAKING, Severity.CRITICAL).why == "1 finding of severity critical or worse"


def test_findings_below_the_threshold_do_not_count():
    run = (*QUIET[:-1], FindingMade(finding=reuse()))
    assert exit_code_of(run, Severity.MEDIUM) is ExitCode.FINDINGS
    assert exit_code_of(run, Severity.HIGH) is ExitCode.CLEAN


def test_accepted_findings_do_not_count():
    assert exit_code_of((*QUIET, FindingMade(finding=unread(), accepted="known"))) is ExitCode.CLEAN


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ((started(),), "nothing was tested"),
        ((started(), NOT_TESTED), "nothing was tested"),
        ((started(), *ONE_WORD, INCONCLUSIVE), "inconclusive: churn-steady"),
        ((started("audit"), NodeRead(node="a")), "no figure of any node could be read"),
    ],
)
def test_too_little_tested_is_inconclusive_unless_the_user_lets_it_pass(events, why):
    for choice in (OnInconclusive.TELL, OnInconclusive.FAIL):
        ending = ending_of(events, on_inconclusive=choice)
        assert (ending.code, ending.why) == (ExitCode.INCONCLUSIVE, why)
    assert exit_code_of(events, on_inconclusive=OnInconclusive.PASS) is ExitCode.CLEAN


def test_a_finding_goes_before_what_was_inconclusive():
    assert exit_code_of((*INTERRUPTED, FindingMade(finding=unread()))) is ExitCode.FINDINGS


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"status": None, "failure": "connect"}, "no HTTP answer to any request"),
        ({"status": 401, "failure": "refused"}, "refused the credentials"),
        ({"status": 403, "failure": "refused"}, "refused the credentials"),
    ],
)
def test_a_target_that_cannot_be_spoken_to_is_unreachable(more, why):
    refused = answered("one-word", 1, "probe", **more)
    ending = ending_of((started(), refused, NOT_TESTED))
    assert ending.code is ExitCode.UNREACHABLE
    assert why in ending.why
    assert exit_code_of((started(), refused, *ONE_WORD)) is ExitCode.CLEAN, "one was answered"


def test_an_audit_that_reaches_no_node_is_unreachable_whatever_it_found():
    missing = FindingMade(finding=reuse(code="KVF119", about="decode-1"))
    gone = NodeRead(node="decode-1", verdict="unreachable")
    assert exit_code_of((started("audit"), gone, missing)) is ExitCode.UNREACHABLE
    assert exit_code_of((started("audit"), missing)) is ExitCode.UNREACHABLE
    assert exit_code_of((*AUDIT, gone, missing)) is ExitCode.FINDINGS


QUIET_AUDIT = tuple(event for event in AUDIT if not isinstance(event, FindingMade | RunEnded))


def test_an_audit_without_findings_is_clean():
    judged = tuple(event for event in QUIET_AUDIT if getattr(event, "node", None) != "decode-2")
    assert ending_of(judged).why == "no finding on 2 nodes"
    assert exit_code_of(judged) is ExitCode.CLEAN


@pytest.mark.parametrize("verdict", ["unknown", "unreachable"])
def test_a_node_that_could_not_be_judged_is_no_pass(verdict):
    one = NodeRead(node="decode-3", verdict=verdict)
    judged = (*(event for event in QUIET_AUDIT if getattr(event, "node", None) != "decode-2"), one)
    ending = ending_of(judged, Severity.HIGH)
    assert (ending.code, ending.why) == (ExitCode.INCONCLUSIVE, "could not be judged: decode-3")
    assert exit_code_of(judged, on_inconclusive=OnInconclusive.PASS) is ExitCode.CLEAN
    accepted = FindingMade(finding=reuse(code="KVF104", about="decode-3"), accepted="known")
    assert exit_code_of((*judged, accepted)) is ExitCode.CLEAN


def test_the_code_is_judged_by_events_and_not_by_what_an_end_says():
    end = msgspec.structs.replace(QUIET[-1], exit_code=3)
    assert exit_code_of((*QUIET[:-1], end)) is ExitCode.CLEAN


def test_what_is_milder_than_what_counts_is_said_all_the_same():
    run = (started("audit"), NodeRead(node="a", figures=AUDIT[1].figures, verdict="ok"))
    mild = FindingMade(finding=unread(about="a", code="KVF114", severity=Severity.INFO))
    ending = ending_of((*run, mild))
    assert (ending.code, ending.why) == (
        ExitCode.CLEAN,
        "no finding of severity medium or worse, 1 below it",
    )
