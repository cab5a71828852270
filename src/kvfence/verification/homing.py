"""The way home: from every state of a closing scope, one without any more weather.

Rules: home is law 11 for the present (`World.is_home`) with nothing under way: no message, no write, no pass,
no cut. Only moves that cost no weather count as a way, so that nobody has to be unlucky to come home.

That says two things of a scope that closed. Nobody is ever stuck: each state has such a way. And there is
no livelock under strong fairness (a free happening that is possible again and again happens in the end): the
states that a fair run visits for ever form a set that free moves never leave, all of it can reach itself,
and as it has a way home, home is in it.
"""

from array import array
from collections import deque
from dataclasses import dataclass

from kvfence.protocol import Decisions
from kvfence.protocol.errors import invariant
from kvfence.verification.engine import Engine
from kvfence.verification.layout import LIVING, State
from kvfence.verification.moves import Move
from kvfence.verification.parts import Part
from kvfence.verification.scopes import Scope
from kvfence.verification.search import Counterexample
from kvfence.world import Finding, Kind

STATES_MAX = 400_000  # edges are kept: this is for small scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Homing:
    """What was found. `stranded` is the first state (of fewest steps) without a way home."""

    states: int
    edges: int
    homes: int
    stranded_states: int
    stranded: Counterexample | None


def find_stranded(scope: Scope, decisions: Decisions, *, states_max: int = STATES_MAX) -> Homing:
    """Search a scope whole, and then backwards from home."""
    graph = _Graph(scope, decisions)
    graph.explore(states_max)
    return graph.homing()


class _Graph:
    def __init__(self, scope: Scope, decisions: Decisions) -> None:
        self.scope = scope
        self.engine = Engine(scope, decisions)
        self.number: dict[int, int] = {}
        self.sources = array("I")  # of free moves
        self.targets = array("I")
        self.parents: list[tuple[int, Move] | None] = []
        self.homes = array("I")

    def explore(self, states_max: int) -> None:
        """Visit every state; keep every free edge."""
        engine = self.engine
        start = engine.start()
        queue: deque[tuple[int, State]] = deque([(self._file(start, engine.key_of(start), None), start)])
        while queue:
            index, state = queue.popleft()
            for move in engine.enabled(state):
                new, _ = engine.after(state, move)
                key = engine.key_of(new)
                known = self.number.get(key)
                if known is None:
                    known = self._file(new, key, (index, move))
                    queue.append((known, new))
                    full = len(self.parents) > states_max
                    invariant(
                        not full, f"scope {self.scope.name} is too large to keep its edges: {states_max}"
                    )
                if new[-1] is state[-1]:
                    self.sources.append(index)
                    self.targets.append(known)

    def _file(self, state: State, key: int, parent: tuple[int, Move] | None) -> int:
        index = self.number[key] = len(self.parents)
        self.parents.append(parent)
        if self._is_home(state):
            self.homes.append(index)
        return index

    def _is_home(self, state: State) -> bool:
        layout = self.engine.layout
        if any(state[place].value for place in (*layout.wires.values(), *layout.writes.values())):
            return False
        if any(not _has_ended(state[place]) for place in layout.request.values()):
            return False
        if state[LIVING].value.paused:
            return False
        return all(self._node_is_home(state[place]) for place in layout.node.values())

    def _node_is_home(self, part: Part) -> bool:
        known: bool | None = part.cache.get("home")
        if known is None:
            node = part.value
            known = node is None or (
                not (node.passes or node.cuts or node.verifies or node.jobs)
                and self.engine.core_is_home(node.core)
            )
            part.cache["home"] = known
        return known

    def homing(self) -> Homing:
        """Go backwards from home; what is not met is stranded."""
        states = len(self.parents)
        starts = array("I", bytes(4 * (states + 1)))
        for target in self.targets:
            starts[target + 1] += 1
        for index in range(states):
            starts[index + 1] += starts[index]
        filled = starts[:]
        into = array("I", bytes(4 * len(self.targets)))
        for source, target in zip(self.sources, self.targets, strict=True):
            into[filled[target]] = source
            filled[target] += 1
        comes_home = bytearray(states)
        stack = list(self.homes)
        for index in stack:
            comes_home[index] = 1
        while stack:
            index = stack.pop()
            for source in into[starts[index] : starts[index + 1]]:
                if not comes_home[source]:
                    comes_home[source] = 1
                    stack.append(source)
        first = comes_home.find(0)
        return Homing(
            states=states,
            edges=len(self.targets),
            homes=len(self.homes),
            stranded_states=comes_home.count(0),
            stranded=None if first < 0 else self._counterexample(first),
        )

    def _counterexample(self, index: int) -> Counterexample:
        happenings = []
        parent = self.parents[index]
        while parent is not None:
            index, move = parent
            happenings.append(move.happening)
            parent = self.parents[index]
        what = "from here there is no way home, whatever happens without more weather"
        finding = Finding(Kind.NOT_HOME, self.engine.first_node(), what)
        return Counterexample(scope=self.scope, happenings=tuple(happenings[::-1]), findings=(finding,))


def _has_ended(part: Part) -> bool:
    client = part.value[1]
    return client is None or client.end is not None or client.is_lost
