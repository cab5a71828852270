"""From what a scenario saw to what the report says.

Rules it keeps:
- "No evidence" comes with the upper 95 % bound 3 / (n · c · d). Where n, c or d is missing there is no bound,
  and the verdict is *inconclusive*.
- *Suspect* holds only where the scenario's p-value does after Holm's correction over all scenarios.
- A finding says how it can be seen again: the replay line holds the seed, the scenario and the profile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kvfence.check.scenario import Outcome, Scenario, Sighting
from kvfence.check.statistics import holm, rule_of_three
from kvfence.report import Bound, Cost, Finding, Verdict

ALPHA = 0.01  # of the whole run


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One scenario that ran, or could not."""

    scenario: Scenario
    outcome: Outcome
    used: Cost = field(default_factory=Cost)


def bound_of(outcome: Outcome) -> Bound | None:
    """The bound that "no evidence" comes with, or None where something was not measured."""
    n, c, d = outcome.opportunities, outcome.co_residence, outcome.sensitivity
    if not (n and c and d):
        return None
    return rule_of_three(n, c, d)


def without_false_calm(outcome: Outcome) -> Outcome:
    """No evidence without a number is inconclusive."""
    if outcome.verdict is not Verdict.NO_EVIDENCE or bound_of(outcome) is not None:
        return outcome
    lacks = [
        name
        for name, value in (
            ("opportunities", outcome.opportunities),
            ("co-residence", outcome.co_residence),
            ("sensitivity", outcome.sensitivity),
        )
        if not value
    ]
    why = f"{outcome.why}; no bound can be stated, for there is no {' and no '.join(lacks)}"
    return replace(outcome, verdict=Verdict.INCONCLUSIVE, why=why)


def corrected(ended: Sequence[Ended], *, alpha: float = ALPHA) -> tuple[Ended, ...]:
    """Holm over all p-values of a run: what does not hold is no suspect any more."""
    tested = [index for index, one in enumerate(ended) if one.outcome.p_value is not None]
    values = [ended[index].outcome.p_value or 0.0 for index in tested]
    holds = dict(zip(tested, holm(values, alpha), strict=True))
    return tuple(
        _demoted(one, len(tested)) if one.outcome.verdict is Verdict.SUSPECT and not holds.get(index) else one
        for index, one in enumerate(ended)
    )


def _demoted(one: Ended, tests: int) -> Ended:
    why = f"{one.outcome.why}; that does not hold after correction over {tests} tests"
    outcome = replace(one.outcome, verdict=Verdict.NO_EVIDENCE, why=why, sightings=())
    return replace(one, outcome=without_false_calm(outcome))


def replay_id(*, seed: str, scenario: str, profile: str) -> str:
    """What `--replay` takes."""
    return f"{seed}.{scenario}.{profile}"


def finding_of(sighting: Sighting, scenario: Scenario, *, about: str, replay: str) -> Finding:
    """The finding that a sighting becomes."""
    return Finding(
        code=sighting.code,
        severity=sighting.severity,
        about=about,
        what=sighting.what,
        subject_key=f"{scenario.name}/{sighting.subject_key}",
        evidence=sighting.evidence,
        control=scenario.control,
        rival=sighting.rival,
        replay=f"kvfence check URL --replay {replay}",
        smallest_effect=sighting.smallest_effect,
    )
