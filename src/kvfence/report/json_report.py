"""A run as one JSON document: for scripts that want an answer rather than a stream.

Rules it keeps: it holds what the events hold, sorted, with each finding's code in words and its fingerprint;
its `format` is raised when a reader would misunderstand.
"""

import json
from collections import Counter
from collections.abc import Iterable

import msgspec

from kvfence.report.codes import CODES
from kvfence.report.digest import Digest, Story
from kvfence.report.events import AnyEvent, FindingMade
from kvfence.report.root_causes import looked_for

FORMAT = 1


def json_report(events: Iterable[AnyEvent]) -> str:
    """Return the document as text."""
    return json.dumps(document(Digest.of(events)), indent=2, ensure_ascii=False) + "\n"


def document(digest: Digest) -> dict[str, object]:
    """Return the document as plain data."""
    started = digest.started
    return {
        "format": FORMAT,
        "tool": started.tool,
        "version": started.version,
        "run": started.run,
        "started": started.started,
        "targets": list(started.targets),
        "profile": started.profile,
        "seed": started.seed,
        "headline": digest.headline,
        "summary": _summary(digest),
        "findings": [_finding(made) for made in digest.findings],
        "scenarios": [_scenario(story) for story in digest.scenarios],
        "root_causes": _root_causes(digest) if digest.scenarios else [],
        "nodes": [_data(node) for node in digest.nodes],
        "pairs": [_data(pair) for pair in digest.pairs],
        "capabilities": [_data(capability) for capability in digest.capabilities],
        "notes": [_data(note) for note in digest.notes],
        "interrupted": digest.ended is None,
        "exit_code": None if digest.ended is None else digest.ended.exit_code,
        "why": None if digest.ended is None else digest.ended.why,
        "used": None if digest.ended is None else _data(digest.ended.used),
    }


def _summary(digest: Digest) -> dict[str, object]:
    severities = Counter(made.finding.severity.value for made in digest.open_findings)
    verdicts = Counter(story.ended.verdict.value for story in digest.scenarios if story.ended is not None)
    return {
        "open_findings": dict(severities),
        "accepted_findings": len(digest.findings) - len(digest.open_findings),
        "verdicts": dict(verdicts),
        "opportunities": digest.opportunities,
        "requests": len(digest.answers),
    }


def _finding(made: FindingMade) -> dict[str, object]:
    finding = made.finding
    code = CODES.get(finding.code)
    return {
        **_data(finding),
        "title": None if code is None else code.title,
        "fingerprint": finding.fingerprint,
        "scenario": made.scenario,
        "accepted": made.accepted,
        "at_s": made.at_s,
    }


def _scenario(story: Story) -> dict[str, object]:
    if story.ended is None:
        return {"scenario": story.name, "verdict": None, "why": "interrupted", "requests": len(story.answers)}
    return {**_data(story.ended), "requests": len(story.answers)}


def _root_causes(digest: Digest) -> list[dict[str, object]]:
    """Each class with the scenarios that looked for it, and what of it nobody sees from outside."""
    return [
        {
            "class": looked.root,
            "looked": {scenario: verdict.value for scenario, verdict in looked.verdicts},
            "out_of_sight": looked.limit,
        }
        for looked in looked_for(digest)
    ]


def _data(struct: msgspec.Struct) -> dict[str, object]:
    data: dict[str, object] = msgspec.to_builtins(struct)
    data.pop("event", None)
    return data
