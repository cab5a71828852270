"""What the instruments say: findings, codes, the event stream of a run, and a file a report format."""

from kvfence.report.events import (
    Answered,
    AnyEvent,
    Bound,
    CapabilityLearned,
    Cost,
    Event,
    Figure,
    FindingMade,
    NodeRead,
    Noted,
    PairRead,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
)
from kvfence.report.finding import Finding, Place, Severity, Verdict

__all__ = [
    "Answered",
    "AnyEvent",
    "Bound",
    "CapabilityLearned",
    "Cost",
    "Event",
    "Figure",
    "Finding",
    "FindingMade",
    "NodeRead",
    "Noted",
    "PairRead",
    "Place",
    "RunEnded",
    "RunStarted",
    "ScenarioEnded",
    "ScenarioStarted",
    "Severity",
    "Verdict",
]
