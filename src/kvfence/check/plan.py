"""What a run will do: which scenarios, in which size, at what cost; and which not, each with its reason.

Rules it keeps:
- Only what is ordinary runs on a server of others, unless its hazard is allowed by name; on loopback all are.
- A scenario whose need is not met is *not tested*, and says so: it never passes.
- The costs are for this server's own context, and are shown before the first scenario.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from kvfence.check.known import Known
from kvfence.check.profiles import Profile
from kvfence.check.scenario import Hazard, Scenario, Size
from kvfence.protocol.errors import OperatorError
from kvfence.report import Cost


@dataclass(frozen=True, slots=True)
class Chosen:
    """A scenario that will run."""

    scenario: Scenario
    size: Size
    cost: Cost


@dataclass(frozen=True, slots=True)
class Left:
    """A scenario that will not, and why."""

    scenario: Scenario
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All scenarios of a profile, in order."""

    chosen: tuple[Chosen, ...]
    left: tuple[Left, ...]

    @property
    def cost(self) -> Cost:
        """What all of it may use at most."""
        return sum((chosen.cost for chosen in self.chosen), Cost())


def make_plan(
    scenarios: Iterable[Scenario],
    known: Known,
    profile: Profile,
    *,
    allowed: frozenset[Hazard] = frozenset(),
    only: tuple[str, ...] = (),
) -> Plan:
    """Choose from all scenarios. `only` names what is wanted, whatever the profile takes."""
    scenarios = tuple(scenarios)
    check_names(only, scenarios)
    chosen, left = [], []
    for scenario in sorted(scenarios, key=profile.place_of):
        if only and scenario.name not in only:
            continue
        if not only and not profile.takes(scenario):
            continue
        why = _why_not(scenario, known, allowed)
        if why is None:
            chosen.append(Chosen(scenario, profile.size, scenario.cost(known, profile.size)))
        else:
            left.append(Left(scenario, why))
    return Plan(tuple(chosen), tuple(left))


def _why_not(scenario: Scenario, known: Known, allowed: frozenset[Hazard]) -> str | None:
    if known.untestable is not None:
        return known.untestable
    hazard = scenario.hazard
    if hazard is not Hazard.ORDINARY and hazard not in allowed and not known.is_loopback:
        return f"it is {hazard}: allow it with --allow {hazard}, on a server that may be harmed"
    missing = sorted(need.value for need in scenario.needs - known.has)
    if missing:
        return f"it needs {' and '.join(missing)}"
    return None


def check_names(only: tuple[str, ...], scenarios: Iterable[Scenario]) -> None:
    """Raise OperatorError for a scenario that there is not."""
    names = [scenario.name for scenario in scenarios]
    for name in only:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
            raise OperatorError(f"there is no scenario {name!r}: {hint}")
