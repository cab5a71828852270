"""JUnit XML: what passes, fails, is skipped or in error, for a check and for an audit."""

import xml.etree.ElementTree as ET

import pytest

from kvfence.report import FindingMade, NodeRead, RunEnded, Severity
from kvfence.report.exit_codes import OnInconclusive
from kvfence.report.junit import junit
from tests.report.samples import AUDIT, HOSTILE, INTERRUPTED, LEAKING, RUNS, reuse, started, unread

ALLOWED = {
    "testsuites": set(),
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    "testcase": {"name", "classname", "time"},
    "skipped": {"message"},
    "failure": {"message"},
    "error": {"message"},
    "system-out": set(),
}


def suite_of(events, *more):
    return ET.fromstring(junit(events, *more)).find("testsuite")


def states(suite) -> dict[str, str]:
    """Each case's state by its name."""
    return {
        case.get("name"): next((child.tag for child in case if child.tag != "system-out"), "passed")
        for case in suite.iter("testcase")
    }


@pytest.mark.parametrize("name", RUNS)
def test_elements_attributes_and_counts_are_the_usual_ones(name):
    suite = suite_of(RUNS[name])
    for element in suite.iter():
        assert set(element.attrib) <= ALLOWED[element.tag]
    found = states(suite)
    assert int(suite.get("tests")) == len(found)
    assert int(suite.get("failures")) == sum(state == "failure" for state in found.values())
    assert int(suite.get("skipped")) == sum(state == "skipped" for state in found.values())
    assert int(suite.get("errors")) == sum(state == "error" for state in found.values())


def test_a_scenario_passes_fails_or_is_skipped():
    assert states(suite_of(LEAKING)) == {
        "one-word": "passed",
        "boundary": "failure",
        "cross-tenant-reuse": "failure",
        "stale-handoff": "skipped",
    }


def test_findings_below_the_threshold_or_accepted_do_not_fail():
    found = states(suite_of(LEAKING, OnInconclusive.TELL, Severity.HIGH))
    assert found["cross-tenant-reuse"] == "passed"
    accepted = FindingMade(finding=unread(), scenario="one-word", accepted="known")
    suite = suite_of((*LEAKING, accepted))
    assert states(suite)["one-word"] == "passed"
    assert "(accepted: known)" in suite.find("testcase/system-out").text


@pytest.mark.parametrize(
    ("choice", "state"),
    [(OnInconclusive.TELL, "skipped"), (OnInconclusive.PASS, "skipped"), (OnInconclusive.FAIL, "failure")],
)
def test_what_was_inconclusive_is_skipped_unless_the_user_wants_it_to_fail(choice, state):
    assert states(suite_of(INTERRUPTED, choice)) == {
        "one-word": "passed",
        "churn-steady": state,
        "boundary": "error",
    }


def test_rules_of_an_audit_that_need_unknown_figures_are_skipped():
    found = {name.split()[0]: state for name, state in states(suite_of(AUDIT)).items()}
    assert len(found) == 19
    assert {code for code, state in found.items() if state == "failure"} == {"KVF101", "KVF104"}
    assert {"KVF102", "KVF103"} <= {code for code, state in found.items() if state == "skipped"}


def test_rules_say_what_they_looked_at():
    suite = suite_of(AUDIT)
    (told,) = [
        case.find("system-out").text for case in suite.iter("testcase") if "KVF119" in case.get("name")
    ]
    assert told == "looked at 2 nodes; not read: decode-2"


def test_where_every_node_was_judged_the_rules_that_had_something_to_look_at_pass():
    figures = AUDIT[1].figures
    run = (
        started("audit"),
        NodeRead(node="a", figures=figures, verdict="ok"),
        RunEnded(exit_code=0, why="none"),
    )
    found = {name.split()[0]: state for name, state in states(suite_of(run)).items()}
    assert {code for code, state in found.items() if state == "passed"} == {
        *("KVF101", "KVF103", "KVF104", "KVF114", "KVF115", "KVF118", "KVF119"),
    }


def test_a_run_that_tested_nothing_is_no_green_suite():
    assert states(suite_of((started(),))) == {"run": "error"}


def test_where_no_node_was_read_or_the_run_was_cut_no_rule_passes():
    for run in ((started("audit"),), (started("audit"), NodeRead(node="a"))):
        assert set(states(suite_of(run)).values()) == {"skipped"}
    cut = tuple(event for event in AUDIT if not isinstance(event, RunEnded))
    assert "passed" not in states(suite_of(cut)).values()


def test_findings_of_no_scenario_have_a_case_of_their_own():
    found = states(suite_of((started(), FindingMade(finding=unread(about="x")))))
    assert found == {"KVF203 x": "failure"}
    mild = FindingMade(finding=reuse(about="x", severity=Severity.LOW))
    assert states(suite_of((started(), mild))) == {"KVF207 x": "passed"}


def test_words_of_a_server_cannot_break_the_xml():
    suite = suite_of((started(), FindingMade(finding=unread(what=HOSTILE, about=HOSTILE))))
    assert "<script>" in suite.find("testcase").get("name")
