"""Is something that should be possible reached at all? The shortest run to it, within a scope.

A search for findings says that nothing bad is reached; this says that something is, so that a rule that no
run ever comes to is noticed. It goes breadth first, in one process, and looks past findings: under a fault
the way may lead through them.
"""

from collections import deque
from collections.abc import Callable, Iterator

from kvfence.protocol import Decisions, DecodeCore
from kvfence.verification.engine import Engine
from kvfence.verification.layout import State
from kvfence.verification.moves import Move
from kvfence.verification.scopes import Scope
from kvfence.world.happenings import Happening

Goal = Callable[[list[DecodeCore], list[DecodeCore]], bool]  # decode nodes before and after a step
Parent = tuple[int, Move]


def shortest_run(
    scope: Scope, decisions: Decisions, goal: Goal, *, states_max: int
) -> tuple[Happening, ...] | None:
    """The happenings of the shortest run whose last step reaches the goal, or None within so many states."""
    engine = Engine(scope, decisions)
    start = engine.start()
    seen, parents, queue = {engine.key_of(start)}, list[Parent | None]([None]), deque([(0, start)])
    while queue and len(seen) < states_max:
        index, state = queue.popleft()
        before = list(_decodes(engine, state))
        for move in engine.enabled(state):
            new, _ = engine.after(state, move)
            if goal(before, list(_decodes(engine, new))):
                return (*_run_to(parents, index), move.happening)
            key = engine.key_of(new)
            if key not in seen:
                seen.add(key)
                parents.append((index, move))
                queue.append((len(parents) - 1, new))
    return None


def _decodes(engine: Engine, state: State) -> Iterator[DecodeCore]:
    for place in engine.layout.node.values():
        node = state[place].value
        if node is not None and isinstance(node.core, DecodeCore):
            yield node.core


def _run_to(parents: list[Parent | None], index: int) -> list[Happening]:
    happenings = []
    while (parent := parents[index]) is not None:
        index, move = parent
        happenings.append(move.happening)
    return happenings[::-1]


# ---------------------------------------------------------------- poison
def poison_comes(before: list[DecodeCore], after: list[DecodeCore]) -> bool:
    """A page is set apart as poisoned."""
    return _poisoned(before) < _poisoned(after)


def poison_goes(before: list[DecodeCore], after: list[DecodeCore]) -> bool:
    """A poisoned page comes home, on a node that lives on."""
    is_same = [core.me for core in before] == [core.me for core in after]
    return is_same and _poisoned(before) > _poisoned(after)


def _poisoned(cores: list[DecodeCore]) -> int:
    return sum(len(core.poisoned) for core in cores)
