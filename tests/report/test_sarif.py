"""SARIF: of the standard's shape, with places, fingerprints, rules from the codes, and suppressions with their reason."""

import copy
import json

import jsonschema
import pydantic
import pytest
from fluidattacks_core.sarif import SarifLog

from kvfence.report import FindingMade, Place, Severity
from kvfence.report.codes import CODES
from kvfence.report.sarif import LEVELS, SECURITY_SEVERITY, sarif
from tests.report.public_schemas import sarif_faults
from tests.report.samples import AUDIT, HOSTILE, LEAKING, QUIET, RUNS, started, unread
from tests.report.sarif_shape import LOG

SOURCE = "runs/run 0.jsonl"
VALIDATOR = jsonschema.Draft202012Validator(LOG)


def run_of(events, source=SOURCE):
    return json.loads(sarif(events, source))["runs"][0]


@pytest.mark.parametrize("name", RUNS)
def test_a_log_has_the_standards_shape(name):
    assert [error.message for error in VALIDATOR.iter_errors(json.loads(sarif(RUNS[name], SOURCE)))] == []


def test_the_shape_can_fail():
    log = json.loads(sarif(LEAKING, SOURCE))
    for break_it in (
        lambda run: run["results"][0].pop("message"),
        lambda run: run["results"][0]["locations"][0].pop("physicalLocation"),
        lambda run: run["results"][0].update(level="fatal"),
        lambda run: run["tool"]["driver"]["rules"][0].update(colour="red"),
        lambda run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
    ):
        broken = copy.deepcopy(log)
        break_it(broken["runs"][0])
        assert not VALIDATOR.is_valid(broken)


def test_the_check_against_a_public_schema_can_fail():
    assert list(sarif_faults({"type": "object"})) == []
    assert "audit.sarif: $: 'colour' is a required property" in list(sarif_faults({"required": ["colour"]}))


def test_a_finding_points_to_its_file_or_to_its_line_in_the_run():
    placed, loose = (result["locations"][0]["physicalLocation"] for result in run_of(LEAKING)["results"])
    assert placed == {
        "artifactLocation": {"uri": "profiles/prod.toml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    line = loose["region"]["startLine"]
    assert loose["artifactLocation"]["uri"] == "runs/run%200.jsonl"
    assert LEAKING[line - 1].finding.code == "KVF207"


def test_without_a_place_and_a_source_the_logical_location_is_all():
    loose = run_of(LEAKING, None)["results"][1]["locations"][0]
    assert list(loose) == ["logicalLocations"]


def test_an_absolute_path_is_a_file_address():
    made = FindingMade(finding=unread(place=Place(path="/etc/kv fence.toml", line=3)))
    (result,) = run_of((started(), made))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "file:///etc/kv%20fence.toml"
    }


def test_results_go_by_fingerprint_and_refer_to_their_rule():
    run = run_of(AUDIT)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["KVF101", "KVF104", "KVF114"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    finding = AUDIT[7].finding
    assert run["results"][0]["partialFingerprints"] == {"kvfenceFinding/v1": finding.fingerprint}


def test_rules_are_the_codes():
    rule = run_of(AUDIT)["tool"]["driver"]["rules"][0]
    code = CODES["KVF101"]
    assert rule["shortDescription"]["text"] == code.title
    assert code.mend in rule["help"]["text"]
    assert rule["properties"]["tags"] == ["security", "external/cwe/cwe-226", "external/cwe/cwe-754"]
    assert rule["name"] == "ThePoolIsSmallerThanTheContext"


@pytest.mark.parametrize("severity", Severity)
def test_levels_and_numbers_follow_the_severity(severity):
    run = run_of((started(), FindingMade(finding=unread(severity=severity))))
    assert run["results"][0]["level"] == LEVELS[severity]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["properties"]["security-severity"] == SECURITY_SEVERITY[severity]
    numbers = [float(SECURITY_SEVERITY[one]) for one in Severity]
    assert numbers == sorted(numbers, reverse=True)


def test_a_rule_has_the_worst_severity_of_its_results():
    mild = FindingMade(finding=unread(severity=Severity.LOW, subject_key="other"))
    run = run_of((*LEAKING, mild))
    assert run["tool"]["driver"]["rules"][0]["properties"]["security-severity"] == "9.5"


def test_accepted_findings_are_suppressed_with_their_reason():
    suppressed = [result for result in run_of(AUDIT)["results"] if "suppressions" in result]
    assert [result["ruleId"] for result in suppressed] == ["KVF114"]
    assert suppressed[0]["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "inner network (until 2027-01-31)"}
    ]


def test_an_interrupted_run_did_not_execute_successfully():
    assert run_of(QUIET)["invocations"][0]["executionSuccessful"]
    invocation = run_of(RUNS["interrupted"])["invocations"][0]
    assert not invocation["executionSuccessful"]
    assert "exitCode" not in invocation


def test_the_start_is_written_as_the_standard_wants_it():
    events = (started(started="2026-01-01T00:00:00+00:00"),)
    assert run_of(events)["invocations"][0]["startTimeUtc"] == "2026-01-01T00:00:00Z"


def test_a_code_of_a_newer_version_has_a_result_without_a_rule():
    run = run_of((started(), FindingMade(finding=unread(code="KVF999"))))
    assert run["tool"]["driver"]["rules"] == []
    assert "ruleIndex" not in run["results"][0]


def test_words_of_a_server_are_made_plain():
    run = run_of((started(), FindingMade(finding=unread(what=HOSTILE))))
    assert "\x1b" not in run["results"][0]["message"]["text"]


@pytest.mark.parametrize("name", RUNS)
def test_a_log_keeps_the_public_schema(name):
    """Whole: the models are generated from it, and know every field, its form and its bounds.

    Their copy lacks the `status` of a suppression, which the standard has (3.35.3).
    """
    log = json.loads(sarif(RUNS[name], SOURCE))
    for result in log["runs"][0]["results"]:
        for suppression in result.get("suppressions", ()):
            assert suppression.pop("status") == "accepted"
    SarifLog.model_validate_json(json.dumps(log))


@pytest.mark.parametrize(
    "break_it",
    [
        lambda log: log.pop("runs"),
        lambda log: log.update(colour="red"),
        lambda log: log["runs"][0]["tool"]["driver"].pop("name"),
        lambda log: log["runs"][0]["results"][0].update(level="critical"),
        lambda log: log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"].update(
            startLine=0
        ),
    ],
)
def test_what_breaks_the_public_schema_is_noticed(break_it):
    log = json.loads(sarif(LEAKING, SOURCE))
    break_it(log)
    with pytest.raises(pydantic.ValidationError):
        SarifLog.model_validate_json(json.dumps(log))
