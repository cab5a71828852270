"""A run as SARIF 2.1.0, for services that collect findings of code scanning.

Rules it keeps:
- Every result has a physical location where one is known: the profile's or log's line that the finding names,
  else the line of the run's own file in which it stands.
- Results are the same from run to run by the finding's fingerprint. What a baseline accepts is suppressed,
  with its reason, not left out.
- A finding that is open is never below `note`, and the severity number follows the severity.
"""

import json
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import quote

from kvfence.report.codes import CODES, Code, address_of
from kvfence.report.digest import Digest
from kvfence.report.events import AnyEvent, FindingMade
from kvfence.report.explain import parts_of, reference_line
from kvfence.report.finding import Finding, Severity
from kvfence.report.plain import plain

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "kvfenceFinding/v1"
LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}
# As code-scanning services rank them: critical above 9.0, high from 7.0, medium from 4.0, low above 0.
SECURITY_SEVERITY = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "3.0",
    Severity.INFO: "1.0",
}


def sarif(events: Iterable[AnyEvent], source: str | None = None) -> str:
    """Return the log as text. `source` is the path of the run's JSON-lines file, as its reader knows it."""
    return json.dumps(sarif_log(Digest.of(events), source), indent=2, ensure_ascii=False) + "\n"


def sarif_log(digest: Digest, source: str | None = None) -> dict[str, object]:
    """Return the log as plain data."""
    used = [CODES[number] for number in CODES if any(made.finding.code == number for made in digest.findings)]
    run = {
        "tool": {
            "driver": {
                "name": "kvfence",
                "version": digest.started.version,
                "semanticVersion": digest.started.version,
                "rules": [_rule(code, _severity(code, digest)) for code in used],
            }
        },
        "automationDetails": {"id": f"kvfence/{digest.started.tool}/{digest.started.run}"},
        "invocations": [_invocation(digest)],
        "results": [
            _result(made, [code.number for code in used], source, digest.line_of[made.finding.fingerprint])
            for made in digest.findings
        ],
        "properties": {"headline": digest.headline, "opportunities": digest.opportunities},
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _severity(code: Code, digest: Digest) -> Severity:
    """The worst that a code was given in this run: services show a rule's severity for all of its results."""
    given = [made.finding.severity for made in digest.findings if made.finding.code == code.number]
    return min(given, key=lambda severity: severity.rank)


def _rule(code: Code, severity: Severity) -> dict[str, object]:
    references = [reference_line(reference) for reference in code.references]
    words = [f"{heading.capitalize()}: {text}" for heading, text in parts_of(code)]
    markdown = [f"**{heading.capitalize()}.** {text}" for heading, text in parts_of(code)]
    rule: dict[str, object] = {
        "id": code.number,
        "name": _camel_case(code.title),
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.what},
        "help": {
            "text": "\n\n".join([*words, "References: " + "; ".join(references)]),
            "markdown": "\n\n".join([*markdown, *(f"- {reference}" for reference in references)]),
        },
        "defaultConfiguration": {"level": LEVELS[severity]},
        "properties": {
            "security-severity": SECURITY_SEVERITY[severity],
            "tags": ["security", *(f"external/cwe/{name.lower()}" for name in code.weaknesses)],
        },
    }
    address = next(filter(None, map(address_of, reversed(code.references))), None)
    return rule if address is None else rule | {"helpUri": address}


def _camel_case(title: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in title.replace("'", "")).split()
    return "".join(word[:1].upper() + word[1:] for word in words)


def _invocation(digest: Digest) -> dict[str, object]:
    notifications = [
        {"level": "warning" if note.is_warning else "note", "message": {"text": plain(note.text)}}
        for note in digest.notes
    ]
    invocation: dict[str, object] = {
        "executionSuccessful": digest.ended is not None,
        "startTimeUtc": digest.started.started.replace("+00:00", "Z"),
        "toolExecutionNotifications": notifications,
    }
    if digest.ended is not None:
        invocation |= {"exitCode": digest.ended.exit_code, "exitCodeDescription": plain(digest.ended.why)}
    return invocation


def _result(made: FindingMade, rules: list[str], source: str | None, line: int) -> dict[str, object]:
    finding = made.finding
    result: dict[str, object] = {
        "ruleId": finding.code,
        "level": LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [_location(finding, source, line)],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": {
            "severity": finding.severity.value,
            "evidence": finding.evidence,
            "scenario": made.scenario,
        },
    }
    if finding.code in rules:
        result["ruleIndex"] = rules.index(finding.code)
    if made.accepted is not None:
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": plain(made.accepted)}
        ]
    return result


def _message(finding: Finding) -> str:
    parts = [f"{plain(finding.about)}: {plain(finding.what)}"]
    for name, words in (
        ("Control", finding.control),
        ("It could also be", finding.rival),
        ("To do", finding.fix),
        ("Replay", finding.replay),
    ):
        if words is not None:
            parts.append(f"{name}: {plain(words)}")
    return "\n".join(parts)


def _location(finding: Finding, source: str | None, line: int) -> dict[str, object]:
    location: dict[str, object] = {
        "logicalLocations": [{"fullyQualifiedName": plain(finding.about), "kind": "resource"}]
    }
    if finding.place is not None:
        location["physicalLocation"] = _physical(finding.place.path, finding.place.line)
    elif source is not None:
        location["physicalLocation"] = _physical(source, line)
    return location


def _physical(path: str, line: int) -> dict[str, object]:
    return {"artifactLocation": _artifact(path), "region": {"startLine": max(1, line)}}


def _artifact(path: str) -> dict[str, str]:
    if PurePosixPath(path).is_absolute():
        return {"uri": f"file://{quote(path)}"}
    return {"uri": quote(path), "uriBaseId": "%SRCROOT%"}
