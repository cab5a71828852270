"""A run as JUnit XML: each scenario, or each rule of the audit, is a test case.

Rules it keeps:
- What was not tested is skipped, with its reason; so is what was inconclusive, unless the user wants it to
  fail. A scenario that was interrupted is an error. Nothing of these passes.
- A test case fails by an open finding that counts; others stand in its output.
- A rule of the audit that had nothing to look at, or not all of it, is skipped, not passed.
- A run without any test case is an error: it tested nothing.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvfence.report.codes import CODES, Code
from kvfence.report.digest import Digest, Story
from kvfence.report.events import AnyEvent, FindingMade
from kvfence.report.exit_codes import DEFAULT_FAIL_ON, OnInconclusive
from kvfence.report.finding import Severity, Verdict
from kvfence.report.junit_rules import why_not_judged
from kvfence.report.plain import counted, listed, plain

AUDIT_PREFIX = "KVF1"


@dataclass(frozen=True, slots=True)
class Case:
    """One test case. At most one of the three is there; `output` is what else there is to say."""

    name: str
    seconds: float = 0.0
    failure: str | None = None
    error: str | None = None
    skipped: str | None = None
    output: str | None = None


def junit(
    events: Iterable[AnyEvent],
    on_inconclusive: OnInconclusive = OnInconclusive.TELL,
    fail_on: Severity = DEFAULT_FAIL_ON,
) -> str:
    """Return the XML as text."""
    digest = Digest.of(events)
    cases = list(cases_of(digest, on_inconclusive, fail_on)) or [_nothing(digest)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.failure is not None for case in cases)),
        "errors": str(sum(case.error is not None for case in cases)),
        "skipped": str(sum(case.skipped is not None for case in cases)),
    }
    tool = plain(digest.started.tool)
    suite = ET.Element("testsuite", {"name": f"kvfence {tool}", "time": _seconds(digest.last_s)} | counts)
    suite.set("timestamp", plain(digest.started.started).removesuffix("Z").partition("+")[0])
    suite.set("hostname", listed(digest.started.targets))
    suite.extend(_case_element(case, f"kvfence.{tool}") for case in cases)
    ET.SubElement(suite, "system-out").text = plain(digest.headline)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def cases_of(digest: Digest, on_inconclusive: OnInconclusive, fail_on: Severity) -> Iterator[Case]:
    """Yield the test cases of a run."""
    if digest.is_audit:
        yield from _audit_cases(digest, fail_on)
    for story in digest.scenarios:
        yield _scenario_case(story, on_inconclusive, fail_on)
    yield from _loose_findings(digest, fail_on)


def _nothing(digest: Digest) -> Case:
    """The case of a run that came to no scenario."""
    return Case("run", error=f"nothing was tested: {plain(digest.headline)}")


def _audit_cases(digest: Digest, fail_on: Severity) -> Iterator[Case]:
    for code in CODES.values():
        if code.number.startswith(AUDIT_PREFIX):
            made = [
                one for one in digest.findings if one.finding.code == code.number and one.scenario is None
            ]
            yield _rule_case(code, made, digest, fail_on)


def _rule_case(code: Code, made: list[FindingMade], digest: Digest, fail_on: Severity) -> Case:
    name = f"{code.number} {code.title}"
    counting = [one for one in made if _counts(one, fail_on)]
    output = _told([one for one in made if one not in counting])
    if counting:
        return Case(name, failure=_told(counting), output=output)
    why = why_not_judged(code.number, digest)
    if why is not None:
        return Case(name, skipped=why, output=output)
    return Case(name, output="\n".join(filter(None, (output, _looked_at(digest)))))


def _looked_at(digest: Digest) -> str:
    """What a rule that found nothing rests on."""
    unread = [node.node for node in digest.nodes if not node.figures]
    words = f"looked at {counted(len(digest.nodes) - len(unread), 'node', 'nodes')}"
    return f"{words}; not read: {listed(unread)}" if unread else words


def _scenario_case(story: Story, on_inconclusive: OnInconclusive, fail_on: Severity) -> Case:
    name = plain(story.name)
    counting = [one for one in story.findings if _counts(one, fail_on)]
    others = _told([one for one in story.findings if one not in counting])
    seconds = sum(answer.total_s or 0.0 for answer in story.answers)
    ended = story.ended
    if counting:
        return Case(name, seconds, failure=_told(counting), output=others)
    if ended is None:
        return Case(name, seconds, error="interrupted before it came to a verdict", output=others)
    why = f"{ended.verdict}: {plain(ended.why)}"
    seconds = ended.used.seconds or seconds
    if ended.verdict is Verdict.NOT_TESTED:
        return Case(name, seconds, skipped=why, output=others)
    if ended.verdict is Verdict.INCONCLUSIVE:
        if on_inconclusive is OnInconclusive.FAIL:
            return Case(name, seconds, failure=why, output=others)
        return Case(name, seconds, skipped=why, output=others)
    return Case(name, seconds, output="\n".join(filter(None, (why, others))))


def _loose_findings(digest: Digest, fail_on: Severity) -> Iterator[Case]:
    """Findings of a check that belong to no scenario: the run's own observation of every answer."""
    heard = {story.name for story in digest.scenarios}
    for made in digest.findings:
        is_told = made.scenario in heard or (digest.is_audit and made.finding.code.startswith(AUDIT_PREFIX))
        if not is_told:
            name = f"{made.finding.code} {plain(made.finding.about)}"
            failure = _told([made]) if _counts(made, fail_on) else None
            yield Case(name, failure=failure, output=None if failure else _told([made]))


def _counts(made: FindingMade, fail_on: Severity) -> bool:
    return made.accepted is None and made.finding.severity.is_at_least(fail_on)


def _told(made: list[FindingMade]) -> str | None:
    """Findings as lines, each with its fix; None for none."""
    lines = []
    for one in made:
        finding = one.finding
        accepted = "" if one.accepted is None else f" (accepted: {plain(one.accepted)})"
        lines.append(
            f"{finding.severity} {finding.code} {plain(finding.about)}: {plain(finding.what)}{accepted}"
        )
        lines += [f"  {word}: {plain(said)}" for word, said in _parts(one) if said is not None]
    return "\n".join(lines) or None


def _parts(made: FindingMade) -> tuple[tuple[str, str | None], ...]:
    finding = made.finding
    return (
        ("control", finding.control),
        ("rival", finding.rival),
        ("fix", finding.fix),
        ("replay", finding.replay),
    )


def _case_element(case: Case, classname: str) -> ET.Element:
    element = ET.Element("testcase", classname=classname, name=case.name, time=_seconds(case.seconds))
    if case.skipped is not None:
        ET.SubElement(element, "skipped", message=case.skipped)
    for tag, words in (("error", case.error), ("failure", case.failure)):
        if words is not None:
            ET.SubElement(element, tag, message=words.splitlines()[0]).text = words
    if case.output:
        ET.SubElement(element, "system-out").text = case.output
    return element


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
