"""What each root-cause class needs to be seen from outside, and what of it cannot be.

Rules it keeps: which scenarios look for a class is read from the scenarios themselves; one that none looks
for has a sentence in `UNSEEN` that says why nobody can. `LIMITS` says, for those that are looked for, what
stays out of sight however long one looks: it stands with the reports, which say it to their readers.
"""

from collections.abc import Iterable

from kvfence.check.scenario import Scenario
from kvfence.report.root_causes import LIMITS

ROOT_CLASSES = tuple(LIMITS)

# Classes that no scenario looks for, and why none can. There is none at present.
UNSEEN: dict[str, str] = {}


def seen_by(scenarios: Iterable[Scenario]) -> dict[str, tuple[str, ...]]:
    """For each class the names of the scenarios that look for it, in their order."""
    scenarios = tuple(scenarios)
    return {
        root: tuple(scenario.name for scenario in scenarios if root in scenario.classes)
        for root in ROOT_CLASSES
    }


def said_of(root: str, scenarios: Iterable[Scenario]) -> str:
    """One sentence on a class: who looks for it, and what stays out of sight."""
    names = seen_by(scenarios)[root]
    if not names:
        return f"{root}: nothing looks for it here; {UNSEEN.get(root, 'the scenarios for it were left out')}"
    return f"{root}: looked for by {', '.join(names)}; {LIMITS[root]}"
