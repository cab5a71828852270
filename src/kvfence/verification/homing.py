"""The way home: from every state of a scope that closed, one without any more weather.

Rules: home is law 11 for the present (`World.is_home`) with nothing under way: no message, no write, no pass,
no cut. Only moves that cost no weather count as a way, so that nobody has to be unlucky to come home.

Two things are asked of the graph of free moves. Nobody is ever stuck: home can be reached from each state.
And there is no livelock: where free moves can go round away from home, a fair run has to leave
(`fairness.py` says what is fair). A round that fairness alone does not end is walked through once more, with
true names, to see whether a deadline passes meanwhile.
"""

from collections.abc import Callable, Sequence

from kvfence.verification.edges import Share
from kvfence.verification.engine import Engine
from kvfence.verification.fairness import Round
from kvfence.verification.graph import Graph, join, owner_of, ways_home
from kvfence.verification.layout import LIVING, State
from kvfence.verification.outcome import Counterexample, Homing
from kvfence.verification.parts import Part
from kvfence.world import Finding, Kind
from kvfence.world.happenings import Happening

STRANDED = "from here there is no way home, whatever happens without more weather"
GOES_ROUND = "a fair run without more weather can go round here for ever, away from home"
PathTo = Callable[[int, int], list[Happening]]  # the worker, and its number for the state


def home_rule(engine: Engine) -> Callable[[State], bool]:
    """Return a function that tells whether a state is home."""
    layout = engine.layout
    under_way = (*layout.wires.values(), *layout.writes.values())
    requests, nodes = tuple(layout.request.values()), tuple(layout.node.values())

    def is_home(state: State) -> bool:
        if any(state[place].value for place in under_way) or state[LIVING].value.paused:
            return False
        if not all(_has_ended(state[place]) for place in requests):
            return False
        return all(_node_is_home(engine, state[place]) for place in nodes)

    return is_home


def _has_ended(part: Part) -> bool:
    client = part.value[1]
    return client is None or client.end is not None or client.is_lost


def _node_is_home(engine: Engine, part: Part) -> bool:
    known: bool | None = part.cache.get("home")
    if known is None:
        node = part.value
        known = node is None or (
            not (node.passes or node.cuts or node.verifies or node.jobs) and engine.core_is_home(node.core)
        )
        part.cache["home"] = known
    return known


def judge(engine: Engine, shares: Sequence[Share], path_to: PathTo) -> Homing:
    """Look for states that are stranded, and for rounds in which a fair run can stay."""
    return _Judge(engine, shares, path_to).homing()


class _Judge:
    def __init__(self, engine: Engine, shares: Sequence[Share], path_to: PathTo) -> None:
        self.engine = engine
        self.shares = shares
        self.path_to = path_to
        self.graph: Graph = join(shares)

    def homing(self) -> Homing:
        graph = self.graph
        ways = ways_home(graph)
        stranded = self._first_stranded(ways.comes_home)
        timed, livelock = 0, None
        for component in ways.kept:
            if not ways.comes_home[component[0]]:
                continue  # a finding already: it has no way home
            going = Round(self.engine, self._way(min(component)), [graph.keys[state] for state in component])
            if going.is_timed():
                timed += 1
            elif livelock is None:
                livelock = self._found([*self._way(min(component)), *going.once], GOES_ROUND)
        return Homing(
            states=graph.states,
            edges=len(graph.targets),
            homes=graph.homes.count(1),
            stranded_states=ways.comes_home.count(0),
            rounds=ways.left + len(ways.kept),
            left=ways.left,
            timed=timed,
            stranded=stranded,
            livelock=livelock,
        )

    def _way(self, state: int) -> list[Happening]:
        return self.path_to(*owner_of(self.shares, state))

    def _first_stranded(self, comes_home: bytearray) -> Counterexample | None:
        """Of the first ones of all workers one of fewest steps."""
        ways, at = [], 0
        for share in self.shares:
            first = comes_home.find(0, at, at + len(share.keys))
            if first >= 0:
                ways.append(self._way(first))
            at += len(share.keys)
        return self._found(min(ways, key=len), STRANDED) if ways else None

    def _found(self, happenings: list[Happening], what: str) -> Counterexample:
        finding = Finding(Kind.NOT_HOME, self.engine.first_node(), what)
        return Counterexample(scope=self.engine.scope, happenings=tuple(happenings), findings=(finding,))
