"""Components, and what comes home in a graph of free moves: small graphs made by hand."""

from array import array

import pytest

from kvfence.verification.edges import Share
from kvfence.verification.graph import components, join, owner_of, ways_home

LAND, HELLO, COMES = ("Land", "p"), ("Announce", "p", "d"), ("Submit", "r")


def share(edges, homes=(), first=0, states=None, expanded=None):
    """`edges`: state → [(key it leads to, class)]; the key of state n is 10 + n."""
    states = len(edges) if states is None else states
    made = Share(first=first)
    made.keys = array("Q", [10 + n for n in range(first, first + states)])
    made.homes = bytearray(n in homes for n in range(first, first + states))
    for state in edges if expanded is None else expanded:
        made.sources.append(state)
        made.counts.append(len(edges[state]))
        for target, kind in edges[state]:
            if kind not in made.names:
                made.names.append(kind)
            made.targets.append(10 + target)
            made.classes.append(made.names.index(kind))
    return made


def looked_at(edges, homes=()):
    return ways_home(join([share(edges, homes)]))


def test_components_come_after_all_that_they_reach():
    edges = {0: [(1, LAND)], 1: [(2, LAND)], 2: [(1, LAND), (3, LAND)], 3: [(3, LAND)], 4: [(0, LAND)]}
    found = [sorted(component) for component in components(join([share(edges)]))]
    assert found == [[3], [1, 2], [0], [4]]


def test_a_long_chain_needs_no_recursion():
    edges = {n: [(n + 1, LAND)] for n in range(5_000)} | {5_000: [(0, LAND)]}
    (component,) = components(join([share(edges)]))
    assert len(component) == 5_001


def test_what_reaches_home_comes_home_and_what_does_not_is_stranded():
    ways = looked_at({0: [(1, LAND), (2, LAND)], 1: [], 2: [(3, LAND)], 3: [(2, LAND)]}, homes={1})
    assert list(ways.comes_home) == [1, 1, 0, 0]


def test_a_round_that_something_owed_only_leads_out_of_is_left():
    ways = looked_at({0: [(1, HELLO), (2, LAND)], 1: [(0, HELLO), (2, LAND)], 2: []}, homes={2})
    assert (ways.left, ways.kept) == (1, [])


@pytest.mark.parametrize(
    "edges",
    [
        {0: [(1, HELLO), (2, LAND)], 1: [(0, HELLO)], 2: []},  # now and then is not always
        {0: [(1, HELLO), (2, LAND)], 1: [(0, HELLO), (0, LAND)], 2: []},  # it is done, and leads back
        {0: [(0, HELLO), (2, COMES)], 1: [], 2: []},  # nobody owes it
    ],
    ids=["not always possible", "done inside", "not owed"],
)
def test_a_round_in_which_a_fair_run_can_stay_is_kept(edges):
    ways = looked_at(edges, homes={2})
    assert ways.left == 0
    assert [sorted(component) for component in ways.kept] in ([[0, 1]], [[0]])


def test_who_goes_round_past_home_is_no_finding():
    ways = looked_at({0: [(1, HELLO)], 1: [(0, HELLO)]}, homes={1})
    assert (ways.left, ways.kept) == (0, [])


def test_shares_of_several_processes_make_the_graph_of_one():
    edges = {0: [(1, LAND), (2, HELLO)], 1: [(3, LAND)], 2: [(4, HELLO)], 3: [(4, COMES)], 4: []}
    whole = join([share(edges, {4})])
    # Two states were there before the work was divided, and one of them was expanded.
    parts = [
        share(edges, {4}, states=2, expanded=[0]),
        share(edges, {4}, first=2, states=1, expanded=[2]),
        Share(first=2),
    ]
    other = share(edges, {4}, first=3, states=2, expanded=[3, 4, 1])
    other.first = 2
    other.sources = array("I", [2, 3, 1])
    parts[2] = other
    joined = join(parts)
    assert [[joined.targets[e] for e in joined.edges_of(n)] for n in range(5)] == [
        [whole.targets[e] for e in whole.edges_of(n)] for n in range(5)
    ]
    assert joined.homes == whole.homes
    assert [owner_of(parts, n) for n in range(5)] == [(0, 0), (0, 1), (1, 2), (2, 2), (2, 3)]
