"""A run's events, sorted by what they are about: what every report format is made from.

Rules it keeps: it adds nothing and leaves nothing out; findings stand worst first; a run without its end is
an interrupted one, and says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from kvfence.protocol.errors import invariant
from kvfence.report.events import (
    Answered,
    AnyEvent,
    CapabilityLearned,
    Event,
    FindingMade,
    NodeRead,
    Noted,
    PairRead,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
)
from kvfence.report.finding import Verdict
from kvfence.report.plain import counted, plain

Kind = TypeVar("Kind", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One scenario: how it began, its answers, how it ended. `ended` None: it was interrupted."""

    name: str
    started: ScenarioStarted | None
    answers: tuple[Answered, ...]
    ended: ScenarioEnded | None
    findings: tuple[FindingMade, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One run. `line_of` gives each finding's place among the events, from 1."""

    started: RunStarted
    nodes: tuple[NodeRead, ...]
    pairs: tuple[PairRead, ...]
    capabilities: tuple[CapabilityLearned, ...]
    scenarios: tuple[Story, ...]
    answers: tuple[Answered, ...]
    findings: tuple[FindingMade, ...]
    notes: tuple[Noted, ...]
    ended: RunEnded | None
    line_of: dict[str, int]
    last_s: float

    @classmethod
    def of(cls, events: Iterable[AnyEvent]) -> "Digest":
        """Sort the events of one run, which begins with its RunStarted."""
        found = list(events)
        starts = _only(found, RunStarted)
        invariant(starts, "the events of a run begin with its start")
        ends = _only(found, RunEnded)
        answers = _only(found, Answered)
        made = tuple(sorted(_only(found, FindingMade), key=lambda one: one.finding.severity.rank))
        return cls(
            started=starts[0],
            nodes=_only(found, NodeRead),
            pairs=_only(found, PairRead),
            capabilities=_only(found, CapabilityLearned),
            scenarios=_stories(found, answers, made),
            answers=answers,
            findings=made,
            notes=_only(found, Noted),
            ended=ends[-1] if ends else None,
            line_of={
                event.finding.fingerprint: line
                for line, event in enumerate(found, start=1)
                if isinstance(event, FindingMade)
            },
            last_s=max(event.at_s for event in found),
        )

    @property
    def is_audit(self) -> bool:
        """Whether it is an audit's run: of nodes and rules rather than of scenarios."""
        return self.started.tool == "audit"

    @property
    def open_findings(self) -> tuple[FindingMade, ...]:
        """Findings that no baseline accepts, worst first."""
        return tuple(made for made in self.findings if made.accepted is None)

    @property
    def opportunities(self) -> int:
        """How often, in scenarios that saw nothing, a leak had its chance."""
        ends = (story.ended for story in self.scenarios if story.ended is not None)
        return sum(end.bound.opportunities for end in ends if end.bound is not None)

    @property
    def no_evidence(self) -> str:
        """The sentence for a run without open findings. It claims no more than was looked at."""
        accepted = len(self.findings) - len(self.open_findings)
        but = f"; {accepted} accepted by the baseline" if accepted else ""
        if self.is_audit:
            return f"no finding on {counted(len(self.nodes), 'node', 'nodes')}{but}"
        return f"no evidence in {counted(self.opportunities, 'opportunity', 'opportunities')}{but}"

    @property
    def headline(self) -> str:
        """The first line of every report: the worst open finding with its numbers, or what was not seen."""
        if self.open_findings:
            worst = self.open_findings[0].finding
            return f"{worst.severity.upper()} {worst.code} {plain(worst.about)}: {plain(worst.what)}"
        if self.ended is None:
            return f"interrupted after {self.last_s:.0f} s: {self.no_evidence}"
        if not self.is_audit and not self.scenarios and not self.findings:
            return f"nothing was tested: {plain(self.ended.why)}"
        is_untested = bool(self.scenarios) and all(
            story.ended is None or story.ended.verdict in (Verdict.NOT_TESTED, Verdict.INCONCLUSIVE)
            for story in self.scenarios
        )
        return f"too little was tested: {plain(self.ended.why)}" if is_untested else self.no_evidence


def _only(events: Iterable[AnyEvent], kind: type[Kind]) -> tuple[Kind, ...]:
    return tuple(event for event in events if isinstance(event, kind))


def _stories(
    events: Iterable[AnyEvent], answers: tuple[Answered, ...], made: tuple[FindingMade, ...]
) -> tuple[Story, ...]:
    """Scenarios in the order in which they were first heard of."""
    starts = {event.scenario: event for event in events if isinstance(event, ScenarioStarted)}
    ends = {event.scenario: event for event in events if isinstance(event, ScenarioEnded)}
    heard = dict.fromkeys(
        event.scenario for event in events if isinstance(event, ScenarioStarted | ScenarioEnded)
    )
    return tuple(
        Story(
            name=name,
            started=starts.get(name),
            answers=tuple(answer for answer in answers if answer.scenario == name),
            ended=ends.get(name),
            findings=tuple(one for one in made if one.scenario == name),
        )
        for name in heard
    )
