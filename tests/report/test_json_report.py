"""One document: whole, with codes in words, and valid JSON whatever a server said."""

import json

from kvfence.report import FindingMade
from kvfence.report.json_report import json_report
from tests.report.samples import AUDIT, HOSTILE, INTERRUPTED, LEAKING, started, unread


def test_a_document_has_findings_scenarios_and_the_end():
    data = json.loads(json_report(LEAKING))
    assert data["exit_code"] == 1
    assert not data["interrupted"]
    assert [finding["title"] for finding in data["findings"]] == [
        "A long prompt was answered and never read",
        "Counters show that tenants share a prefix cache",
    ]
    assert data["findings"][0]["fingerprint"] == unread().fingerprint
    assert data["summary"] == {
        "open_findings": {"critical": 1, "medium": 1},
        "accepted_findings": 0,
        "verdicts": {"no evidence": 1, "unread": 1, "exposed": 1, "not tested": 1},
        "opportunities": 12,
        "requests": 11,
    }


def test_an_audit_has_its_nodes_with_where_each_figure_was_read():
    data = json.loads(json_report(AUDIT))
    assert data["nodes"][0]["figures"]["pool_tokens"]["read_from"] == "logs/prefill-1.log line 212"
    assert data["pairs"][0]["limit_tokens"] == 681_275
    assert data["findings"][2]["accepted"] == "inner network (until 2027-01-31)"


def test_an_interrupted_run_says_so():
    data = json.loads(json_report(INTERRUPTED))
    assert data["interrupted"]
    assert data["exit_code"] is None
    assert data["scenarios"][-1] == {
        "scenario": "boundary",
        "verdict": None,
        "why": "interrupted",
        "requests": 2,
    }


def test_words_of_a_server_and_codes_of_a_newer_version_are_no_trouble():
    made = FindingMade(finding=unread(code="KVF999", what=HOSTILE))
    (finding,) = json.loads(json_report((started(), made)))["findings"]
    assert (finding["what"], finding["title"]) == (HOSTILE, None)
