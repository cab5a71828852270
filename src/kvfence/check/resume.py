"""Going on with a run that was interrupted: what its JSON lines say was done, and with what.

Rules it keeps: the same seed, profile and run id; a scenario that has a verdict is not run again; what was
used of the budget stays used. A scenario that was interrupted begins anew, with the same random numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kvfence.check.target import Target
from kvfence.protocol.errors import OperatorError
from kvfence.report import Answered, AnyEvent, Cost, RunEnded, RunStarted, ScenarioEnded, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What an interrupted run had come to. `at_s` is how far its clock had gone."""

    started: RunStarted
    done: frozenset[str]
    used: Cost
    requests: int
    at_s: float


def resumed_from(events: Iterable[AnyEvent]) -> Resumed:
    """Read it from the events of a file. Raises OperatorError for what cannot be gone on with."""
    events = tuple(events)
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is None:
        raise OperatorError("the file does not begin with the start of a run: there is nothing to go on with")
    if started.tool != "check":
        raise OperatorError(f"the file is of kvfence {started.tool}: only a check can be gone on with")
    if started.seed is None or started.profile is None:
        raise OperatorError("the file says no seed or no profile: begin a new run")
    if any(isinstance(event, RunEnded) for event in events):
        raise OperatorError("that run came to its end: kvfence report convert shows it; begin a new one")
    answers = [event for event in events if isinstance(event, Answered)]
    done = frozenset(
        event.scenario
        for event in events
        if isinstance(event, ScenarioEnded) and event.verdict is not Verdict.NOT_TESTED
    )
    return Resumed(
        started=started,
        done=done,
        used=sum((_used(answer) for answer in answers), Cost()),
        requests=max((answer.request for answer in answers), default=0),
        at_s=max((event.at_s for event in events), default=0.0),
    )


def check_same_target(resumed: Resumed, targets: Iterable[Target]) -> None:
    """Raise OperatorError where the run was about another address: verdicts of two servers are no one run."""
    wanted, were = tuple(target.shown for target in targets), resumed.started.targets
    if wanted != were:
        raise OperatorError(
            f"that run is about {', '.join(were)}, not about {', '.join(wanted)}: name the same, or "
            "begin a new run"
        )


def check_same_profile(resumed: Resumed, named: str, default: str) -> None:
    """Raise OperatorError where another profile is named than the run's; the default is nobody's wish."""
    if named not in (default, resumed.started.profile):
        raise OperatorError(
            f"that run has the profile {resumed.started.profile}: leave out --profile {named}, or "
            "begin a new run"
        )


def _used(answer: Answered) -> Cost:
    return Cost(
        requests=1,
        prompt_tokens=max(answer.prompt_tokens or 0, answer.expected_prompt_tokens or 0),
        completion_tokens=answer.completion_tokens or 0,
    )
