"""Exit codes of the instruments, and which one a run ends with.

Rules it keeps:
- 1 is for findings alone, and for open ones: what a baseline accepts does not count.
- A server that could not be spoken to is 4, whatever else was said about it.
- Nothing found where nothing was tested is inconclusive, never clean.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum, unique

from kvfence.report.digest import Digest
from kvfence.report.events import AnyEvent
from kvfence.report.finding import Severity, Verdict

DEFAULT_FAIL_ON = Severity.MEDIUM
UNREACHABLE_CODE, UNREACHABLE_NODE = "KVF119", "unreachable"
CREDENTIALS_REFUSED = (401, 403)
UNJUDGED = ("unknown", UNREACHABLE_NODE)


@unique
class ExitCode(IntEnum):
    """How an instrument ends."""

    CLEAN = 0
    FINDINGS = 1
    USAGE = 2
    INTERNAL = 3
    UNREACHABLE = 4
    INCONCLUSIVE = 5
    INTERRUPTED = 130


# What each says, for the page of codes.
MEANINGS: dict[ExitCode, str] = {
    ExitCode.CLEAN: "no open finding at or above the threshold: no evidence in so many opportunities",
    ExitCode.FINDINGS: "open findings at or above the threshold (`--fail-on`)",
    ExitCode.USAGE: "a flag, a file or the machine does not allow what was asked",
    ExitCode.INTERNAL: "a fault of kvfence itself",
    ExitCode.UNREACHABLE: "the target could not be reached, or refused the credentials",
    ExitCode.INCONCLUSIVE: "too little was tested to say anything (`--on-inconclusive pass` ends with 0)",
    ExitCode.INTERRUPTED: "interrupted; what was seen until then is in the run's file",
}


@unique
class OnInconclusive(StrEnum):
    """What an inconclusive run counts as. TELL: exit code 5, and skipped in JUnit."""

    TELL = "tell"
    FAIL = "fail"  # exit code 5, and a failure in JUnit
    PASS = "pass"  # noqa: S105 (exit code 0, and skipped in JUnit)


@dataclass(frozen=True, slots=True)
class Ending:
    """The exit code, and the sentence that stands for it."""

    code: ExitCode
    why: str


def exit_code_of(
    events: Iterable[AnyEvent],
    fail_on: Severity = DEFAULT_FAIL_ON,
    on_inconclusive: OnInconclusive = OnInconclusive.TELL,
) -> ExitCode:
    """Return the exit code of a run, judged by its events alone."""
    return ending_of(events, fail_on, on_inconclusive).code


def ending_of(
    events: Iterable[AnyEvent],
    fail_on: Severity = DEFAULT_FAIL_ON,
    on_inconclusive: OnInconclusive = OnInconclusive.TELL,
) -> Ending:
    """Return the exit code of a run with its reason, judged by its events alone."""
    digest = Digest.of(events)
    unreachable = _why_unreachable(digest)
    if unreachable is not None:
        return Ending(ExitCode.UNREACHABLE, unreachable)
    counted = [made for made in digest.open_findings if made.finding.severity.is_at_least(fail_on)]
    if counted:
        noun = "finding" if len(counted) == 1 else "findings"
        return Ending(ExitCode.FINDINGS, f"{len(counted)} {noun} of severity {fail_on} or worse")
    little = _why_inconclusive(digest)
    if little is not None and on_inconclusive is not OnInconclusive.PASS:
        return Ending(ExitCode.INCONCLUSIVE, little)
    return Ending(ExitCode.CLEAN, _why_clean(digest, fail_on))


def _why_clean(digest: Digest, fail_on: Severity) -> str:
    """Say that nothing counts, and that something milder was found, where it was."""
    milder = len(digest.open_findings)
    if not milder:
        return digest.no_evidence
    found = f"no finding of severity {fail_on} or worse, {milder} below it"
    return found if digest.is_audit else f"{found}; {digest.no_evidence}"


def _why_unreachable(digest: Digest) -> str | None:
    """Say why, if nothing of the target could be spoken to at all."""
    missing = {made.finding.about for made in digest.findings if made.finding.code == UNREACHABLE_CODE}
    if missing and all(node.verdict == UNREACHABLE_NODE for node in digest.nodes):
        return f"none of the nodes could be reached ({len(missing)} tried)"
    statuses = {answer.status for answer in digest.answers}
    if statuses == {None}:
        return "the target gave no HTTP answer to any request"
    if statuses and statuses <= set(CREDENTIALS_REFUSED):
        return "the target refused the credentials of every request"
    return None


def _why_inconclusive(digest: Digest) -> str | None:
    """Say why, if too little was tested to say anything."""
    ended = [story.ended for story in digest.scenarios if story.ended is not None]
    open_ones = [end.scenario for end in ended if end.verdict is Verdict.INCONCLUSIVE]
    if open_ones:
        return f"inconclusive: {', '.join(open_ones)}"
    if digest.is_audit:
        return _why_unjudged(digest)
    if all(end.verdict is Verdict.NOT_TESTED for end in ended):
        return "nothing was tested"
    return None


def _why_unjudged(digest: Digest) -> str | None:
    """Say which nodes of an audit nobody could judge. What is accepted of them, the user has answered for."""
    if not any(node.figures for node in digest.nodes):
        return "no figure of any node could be read"
    accepted = {made.finding.about for made in digest.findings if made.accepted is not None}
    unjudged = [node.node for node in digest.nodes if node.verdict in UNJUDGED and node.node not in accepted]
    return f"could not be judged: {', '.join(unjudged)}" if unjudged else None
