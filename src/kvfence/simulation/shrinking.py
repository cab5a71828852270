"""Shrinking: the shortest script that still ends in a finding of the same kind.

Whole requests go first, then each piece of weather, then ever smaller parts (delta debugging, Zeller and
Hildebrandt 2002); a replay skips what has become impossible. The number of replays is bounded.
"""

from collections.abc import Callable, Iterator, Sequence

from kvfence.protocol import Decisions
from kvfence.simulation.outcome import Step
from kvfence.simulation.replaying import replay
from kvfence.simulation.swarm import Swarm
from kvfence.world import Kind
from kvfence.world import happenings as h

REPLAYS_MAX = 600

Script = tuple[Step, ...]
Attempt = Callable[[Sequence[Step]], Script | None]


def shrink(swarm: Swarm, decisions: Decisions, script: Script, kind: Kind) -> Script:
    """Return a script that is no longer, and still ends in a finding of `kind` (or the script itself)."""
    left = REPLAYS_MAX

    def attempt(shorter: Sequence[Step]) -> Script | None:
        nonlocal left
        left -= 1
        return replay(swarm, decisions, shorter, kind) if left > 0 else None

    shortest = attempt(script)
    if shortest is None:
        return script
    for without in (_requests, _weather):
        shortest = _drop_each(shortest, without, attempt)
    return _halve(shortest, attempt)


def _requests(script: Script) -> Iterator[frozenset[int]]:
    """Each request's submission: without it nothing of the request can happen."""
    for place, (_, happening) in enumerate(script):
        if isinstance(happening, h.Submit):
            yield frozenset([place])


def _weather(script: Script) -> Iterator[frozenset[int]]:
    for place, (_, happening) in enumerate(script):
        if isinstance(happening, h.Weather) and not isinstance(happening, h.Submit):
            yield frozenset([place])


def _drop_each(
    script: Script, parts: Callable[[Script], Iterator[frozenset[int]]], attempt: Attempt
) -> Script:
    """Leave out each part, latest first, where the finding stays."""
    for part in reversed(list(parts(script))):
        if max(part) < len(script):
            shorter = attempt([step for place, step in enumerate(script) if place not in part])
            script = script if shorter is None else shorter
    return script


def _halve(script: Script, attempt: Attempt) -> Script:
    """Leave out runs of happenings, halves first, then ever shorter ones, until no single one can go."""
    size = max(1, len(script) // 2)
    while True:
        start = 0
        length = len(script)
        while start < len(script):
            shorter = attempt([*script[:start], *script[start + size :]])
            if shorter is None or len(shorter) >= len(script):
                start += size
            else:
                script = shorter
        if size > 1:
            size //= 2
        elif len(script) == length:
            return script
