"""Walks home from the last layer of a scope that did not close.

Rules: a walk takes free moves alone. What goes on by itself comes first, then what answers weather (a dead
node comes back, a hello), then timers; where several things are possible they take turns, so that none of
them is put off for ever. A timer that rings when nothing goes on by itself is free, although the search books
it on the scope's budget of early ones for as long as there is some. A walk ends at home, or in a state from
which an earlier walk came home; one that needs more than `STEPS_MAX` steps, or gets stuck, is a finding,
though no proof: another way might have led home. Of the states of the layer every n-th is walked from, so
that there are at most as many as were asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kvfence.verification.engine import Engine
from kvfence.verification.layout import State
from kvfence.verification.moves import Move
from kvfence.verification.seen import KeySet
from kvfence.world import happenings as h
from kvfence.world.happenings import Happening

STEPS_MAX = 2_000
LOST = f"a walk of free moves from here gets stuck, or is not home after {STEPS_MAX:,}"
BY_ITSELF = frozenset(
    (h.Deliver, h.Land, h.Complete, h.Stop, h.Verify, h.Launch, h.Retire, h.CutDone, h.Destroyed, h.Suspect)
)


@dataclass(slots=True)
class Walked:
    """What the walks of one process came to: the longest, and the first that did not come home."""

    states: int = 0
    walked: int = 0
    longest: int = 0
    lost: list[Happening] | None = None


def walk_home(
    engine: Engine,
    is_home: Callable[[State], bool],
    layer: Sequence[tuple[int, State]],
    walks_max: int,
    path_to: Callable[[int], list[Happening]],
) -> Walked:
    """Walk from every n-th state of a layer; end at the first that does not come home."""
    told = Walked(states=len(layer))
    known = KeySet()
    step = max(1, -(-len(layer) // walks_max))
    for index, state in layer[::step]:
        told.walked += 1
        way = _Way(engine, is_home, known)
        if way.leads_home(state):
            told.longest = max(told.longest, len(way.happenings))
        else:
            told.lost = path_to(index)
            break
    return told


class _Way:
    def __init__(self, engine: Engine, is_home: Callable[[State], bool], known: KeySet) -> None:
        self.engine = engine
        self.is_home = is_home
        self.known = known  # states from which a walk came home
        self.happenings: list[Happening] = []
        self._turns = [0, 0]  # how often one of each kind was taken

    def leads_home(self, state: State) -> bool:
        passed: list[int] = []
        for _ in range(STEPS_MAX):
            key = self.engine.key_of(state)
            if self.is_home(state) or key in self.known:
                for earlier in (*passed, key):
                    self.known.add(earlier)
                return True
            passed.append(key)
            after = self._next(state)
            if after is None:
                return False
            state, move = after
            self.happenings.append(move.happening)
        return False

    def _next(self, state: State) -> tuple[State, Move] | None:
        for kind, moves in enumerate(_in_order(self.engine.enabled(state))):
            free = [
                (new, move)
                for move in moves
                if (new := self.engine.after(state, move)[0]) is not state
                and (new[-1] is state[-1] or (kind and move.timer))
            ]
            if free:
                self._turns[kind] += 1
                return free[self._turns[kind] % len(free)]
        return None


def _in_order(moves: list[Move]) -> Iterator[list[Move]]:
    """What goes on by itself, then what else there is. No client has to come."""
    yield [move for move in moves if type(move.happening) in BY_ITSELF]
    yield [move for move in moves if type(move.happening) not in BY_ITSELF | {h.Submit}]
