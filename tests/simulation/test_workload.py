"""Clients ask around every limit, and share prefixes within tenants and across them."""

from itertools import combinations

from kvfence.simulation.swarm import draw_swarm
from kvfence.simulation.workload import limit_of

SWARMS = [draw_swarm(seed) for seed in range(150)]


def totals():
    for swarm in SWARMS:
        limit = limit_of(swarm.world)
        for arrival in swarm.arrivals:
            yield len(arrival.ask.prompt) + arrival.ask.max_tokens - limit


def test_every_side_of_the_limit_is_asked():
    assert {-1, 0, 1} <= set(totals())
    assert max(totals()) > 1


def test_prompts_end_at_pages_edges_and_on_both_sides_of_them():
    ends = {
        len(arrival.ask.prompt) % swarm.world.page_tokens
        for swarm in SWARMS
        if swarm.world.page_tokens == 4
        for arrival in swarm.arrivals
    }
    assert ends == {0, 1, 2, 3}


def test_whole_pages_are_shared_within_a_tenant_and_across():
    shared = set()
    for swarm in SWARMS:
        for one, other in combinations([arrival.ask for arrival in swarm.arrivals], 2):
            page = swarm.world.page_tokens
            if len(one.prompt) >= page and one.prompt[:page] == other.prompt[:page]:
                shared.add(one.tenant == other.tenant)
    assert shared == {True, False}


def test_requests_have_numbers_of_their_own_and_something_to_ask():
    for swarm in SWARMS:
        numbers = [arrival.ask.request for arrival in swarm.arrivals]
        assert len(set(numbers)) == len(numbers)
        for arrival in swarm.arrivals:
            assert arrival.ask.prompt
            assert arrival.ask.max_tokens >= 1
            assert arrival.router < swarm.world.routers


def test_answers_are_told_from_prompts():
    for swarm in SWARMS:
        for arrival in swarm.arrivals:
            ask = arrival.ask
            assert max(ask.prompt) < ask.token_at(len(ask.prompt))
