"""What others ask of the explorer: does a deployment under these decisions break something in this scope?"""

from typing import cast

from kvfence.protocol import Decisions
from kvfence.protocol.errors import invariant
from kvfence.verification.outcome import Counterexample, Homing, Why
from kvfence.verification.scopes import Scope
from kvfence.verification.search import Limits, search
from kvfence.world import InPlace, Kind, make_world
from kvfence.world.diagram import draw_text
from kvfence.world.telling import Moment, perform_and_tell


def explorer_finds(
    decisions: Decisions,
    scope: Scope,
    *,
    only: frozenset[Kind] | None = None,
    states_max: int | None = None,
    jobs: int = 1,
) -> Counterexample | None:
    """The shortest run to something that must never happen, or None. `only`: look for these kinds alone."""
    ignored = frozenset() if only is None else frozenset(Kind) - only
    limits = Limits(states_max=states_max)
    return search(scope, decisions, limits=limits, jobs=jobs, ignored=ignored).counterexample


def find_stranded(scope: Scope, decisions: Decisions, *, symmetric: bool = True) -> Homing:
    """Search a closing scope whole, whatever else is found in it, for what never comes home."""
    report = search(scope, decisions, ignored=frozenset(Kind), symmetric=symmetric, ways_home=True)
    invariant(report.why is Why.CLOSED, f"scope {scope.name} closes; it stopped: {report.why.value}")
    invariant(report.homing is not None, "the ways home of a scope that closed were asked for")
    return cast("Homing", report.homing)


def tell(counterexample: Counterexample, decisions: Decisions) -> list[Moment]:
    """The run once more, in a world of its own, told step by step."""
    scope = counterexample.scope
    world = make_world(scope.config, decisions, dict(scope.by_number), InPlace())
    return [
        perform_and_tell(world, happening, str(step))
        for step, happening in enumerate(counterexample.happenings, 1)
    ]


def draw(counterexample: Counterexample, decisions: Decisions) -> str:
    """The run as a sequence diagram."""
    return draw_text(tell(counterexample, decisions))
