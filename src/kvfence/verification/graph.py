"""The graph of free moves of a scope that closed: its components, and what comes home in it.

Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972) without recursion. It gives
components in an order in which those that can be reached come first, so that one pass says of each state
whether home can be reached from it. Arrays of numbers alone: some 30 bytes a state and 6 an edge.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvfence.protocol.errors import invariant
from kvfence.verification.edges import Share
from kvfence.verification.fairness import Class, is_owed
from kvfence.verification.seen import KeyIndex

NEW = 0  # not visited yet


@dataclass(slots=True)
class Graph:
    """States by number; the edges of state n are those from `starts[n]` to `starts[n + 1]`."""

    starts: "array[int]"
    targets: "array[int]"
    classes: "array[int]"
    homes: bytearray
    names: list[Class]
    keys: "array[int]"

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.homes)

    def edges_of(self, state: int) -> range:
        """The numbers of the edges that leave a state."""
        return range(self.starts[state], self.starts[state + 1])


def join(shares: Sequence[Share]) -> Graph:
    """One graph of what several processes kept. The first share is that of all before they were divided."""
    keys, homes, names = array("Q"), bytearray(), list(dict.fromkeys(n for s in shares for n in s.names))
    for share in shares:
        keys.extend(share.keys)
        homes += share.homes
    starts = array("I", bytes(4 * (len(homes) + 1)))
    offsets = _offsets(shares)
    for share, offset in zip(shares, offsets, strict=True):
        for source, count in zip(share.sources, share.counts, strict=True):
            starts[_placed(share, offset, source) + 1] = count
    for state in range(len(homes)):
        starts[state + 1] += starts[state]
    index, number = KeyIndex(keys), {name: place for place, name in enumerate(names)}
    targets, classes = array("I", bytes(4 * starts[-1])), array("H", bytes(2 * starts[-1]))
    for share, offset in zip(shares, offsets, strict=True):
        renamed = [number[name] for name in share.names]
        at = 0
        for source, count in zip(share.sources, share.counts, strict=True):
            start = starts[_placed(share, offset, source)]
            for edge in range(count):
                targets[start + edge] = index.number(share.targets[at + edge])
                classes[start + edge] = renamed[share.classes[at + edge]]
            at += count
    return Graph(starts, targets, classes, homes, names, keys)


def _offsets(shares: Sequence[Share]) -> list[int]:
    offsets, total = [], 0
    for share in shares:
        offsets.append(total)
        total += len(share.keys)
    return offsets


def _placed(share: Share, offset: int, local: int) -> int:
    """The number of a state in the graph; those below `first` are everybody's."""
    return local if local < share.first else offset + local - share.first


def owner_of(shares: Sequence[Share], state: int) -> tuple[int, int]:
    """Whose state that is, and its number there."""
    for place, (share, offset) in reversed(list(enumerate(zip(shares, _offsets(shares), strict=True)))):
        if state >= offset:
            return place, share.first + state - offset
    return 0, state


# ---------------------------------------------------------------- components
def components(graph: Graph) -> Iterator[list[int]]:
    """Strongly connected components; one comes after all those that can be reached from it."""
    starts, targets, states = graph.starts, graph.targets, graph.states
    found, low, following = (array("I", bytes(4 * states)) for _ in range(3))
    is_open = bytearray(states)
    opened: list[int] = []
    count = 0
    for root in range(states):
        if found[root] != NEW:
            continue
        path = [root]
        while path:
            state = path[-1]
            if found[state] == NEW:
                count += 1
                found[state] = low[state] = count
                following[state] = starts[state]
                opened.append(state)
                is_open[state] = 1
            at, end, least, deeper = following[state], starts[state + 1], low[state], None
            while at < end:
                target = targets[at]
                at += 1
                if found[target] == NEW:
                    deeper = target
                    break
                if is_open[target] and found[target] < least:
                    least = found[target]
            following[state], low[state] = at, least
            if deeper is not None:
                path.append(deeper)
                continue
            path.pop()
            if path and least < low[path[-1]]:
                low[path[-1]] = least
            if least == found[state]:
                yield _closed(opened, is_open, state)


def _closed(opened: list[int], is_open: bytearray, first: int) -> list[int]:
    component = []
    while True:
        state = opened.pop()
        is_open[state] = 0
        component.append(state)
        if state == first:
            return component


# ---------------------------------------------------------------- what comes home, and what goes round
@dataclass(slots=True)
class Ways:
    """What one pass says: which states come home, and in which components a run may go round away from it.

    `left` are those that a fair run leaves, because a class is possible in all of their states and none of
    its edges stays inside; `kept` are the others.
    """

    comes_home: bytearray
    left: int
    kept: list[list[int]]


def ways_home(graph: Graph) -> Ways:
    """Look at each component once."""
    comes_home, left, kept = bytearray(graph.states), 0, []
    starts, targets, homes = graph.starts, graph.targets, graph.homes
    for component in components(graph):
        if len(component) == 1:
            (state,) = component
            reached = targets[starts[state] : starts[state + 1]]
            comes_home[state] = homes[state] or any(comes_home[target] for target in reached)
            goes_round = state in reached
        else:
            does = any(homes[s] or any(comes_home[targets[e]] for e in graph.edges_of(s)) for s in component)
            for state in component:
                comes_home[state] = does
            goes_round = True
        if goes_round and not any(homes[state] for state in component):
            if _must_leave(graph, component):
                left += 1
            else:
                kept.append(component)
    return Ways(comes_home, left, kept)


def _must_leave(graph: Graph, component: list[int]) -> bool:
    """Whether fairness alone ends a stay: something that is owed is always possible, and only leads out."""
    inside = set(component)
    always: set[int] | None = None
    stays = set()
    for state in component:
        possible = set()
        for edge in graph.edges_of(state):
            possible.add(graph.classes[edge])
            if graph.targets[edge] in inside:
                stays.add(graph.classes[edge])
        always = possible if always is None else always & possible
    invariant(always is not None, "a component has a state")
    return any(is_owed(graph.names[kind]) for kind in (always or set()) - stays)
