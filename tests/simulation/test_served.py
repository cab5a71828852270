"""A deployment that is home serves a fresh request; where it does not, and could, that is found and replays."""

import pytest

from kvfence.protocol import CORRECT, Decisions
from kvfence.protocol.words import EndReason, Timer, TimerKind
from kvfence.simulation.replaying import refuses_fresh, replay, tell, world_of
from kvfence.simulation.run import Run
from kvfence.simulation.served import all_asks, fresh_asks, fresh_submit, unserved, waits_in_vain, ways
from kvfence.simulation.shrinking import shrink
from kvfence.simulation.swarm import draw_swarm
from kvfence.world import Kind
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, ROUTER, a_world, submit, through

SEEDS = range(8)


class NeverPlaces(Decisions):
    """A router for which no node is large enough: whoever comes waits until the deadline."""

    def fits_node(self, needed_tokens: int, pool_tokens: int) -> bool:
        return False


def test_a_correct_deployment_serves_whoever_comes_when_all_is_home():
    served = "fresh request served when all is home"
    outcomes = [Run(draw_swarm(seed)).go() for seed in SEEDS]
    assert all(outcome.is_clean for outcome in outcomes)
    assert sum(outcome.probes[served] for outcome in outcomes) >= len(SEEDS)


def test_a_router_that_never_places_is_found_and_the_script_replays():
    found = [Run(draw_swarm(seed), NeverPlaces()).go() for seed in SEEDS]
    assert {outcome.findings[0].kind for outcome in found if outcome.findings} == {Kind.UNSERVED}
    outcome = next(outcome for outcome in found if outcome.findings)
    swarm = draw_swarm(outcome.seed)
    played = replay(swarm, NeverPlaces(), outcome.script, Kind.UNSERVED)
    assert played
    assert replay(swarm, CORRECT, played, Kind.UNSERVED) is None
    short = shrink(swarm, NeverPlaces(), outcome.script, Kind.UNSERVED)
    assert len(short) <= len(played)
    assert any("unserved" in word for moment in tell(swarm, NeverPlaces(), short) for word in moment.found)


def test_fresh_requests_are_nobody_s_and_one_a_router():
    swarm = draw_swarm(3)
    fresh = fresh_asks(swarm)
    assert len(fresh) == swarm.world.routers
    assert not {ask.request for ask in fresh.values()} & {a.ask.request for a in swarm.arrivals}
    assert len(all_asks(swarm)) == len(swarm.arrivals) + len(fresh)


@pytest.mark.parametrize("decisions", [CORRECT, NeverPlaces()], ids=["correct", "never places"])
def test_a_fresh_request_is_sent_once_and_its_end_is_judged(decisions):
    swarm = draw_swarm(3)
    world = world_of(swarm, decisions)
    sent = fresh_submit(world, swarm)
    assert (refuses_fresh(world, swarm) is None) is (decisions is CORRECT)
    assert fresh_submit(world, swarm) is None
    assert (unserved(world, sent.request) is None) is (decisions is CORRECT)
    assert world.clients[sent.request].end.reason in (EndReason.LENGTH, EndReason.REFUSED, EndReason.DEADLINE)


def test_nothing_is_asked_of_those_who_have_lost_one_another_or_have_no_room():
    world = a_world()
    ask = world.asks[1]
    assert list(ways(world, ROUTER, ask)) == [(PREFILL, DECODE)]
    world.cores[DECODE].ledger.lease(5, 99)
    assert list(ways(world, ROUTER, ask)) == []
    world = a_world()
    world.perform(h.Suspect(DECODE, PREFILL))
    assert list(ways(world, ROUTER, ask)) == []
    world = a_world()
    world.cores[PREFILL].ledger.lease(4, 99)
    assert list(ways(world, ROUTER, ask)) == []


@pytest.mark.parametrize("decisions", [CORRECT, NeverPlaces()], ids=["correct", "never places"])
def test_who_waits_in_the_queue_of_an_idle_deployment_waits_in_vain(decisions):
    world = a_world(decisions)
    submit(world)
    fire = h.Fire(ROUTER, Timer(TimerKind.QUEUE, 1))
    waited = waits_in_vain(world, fire)
    assert (waited is None) is (decisions is CORRECT)
    assert decisions is CORRECT or "waits for room" in waited
    through(world)
    assert waits_in_vain(world, h.Fire(ROUTER, Timer(TimerKind.REQUEST, 1))) is None


def test_a_row_waits_in_vain_for_a_page_that_is_free():
    world = a_world()
    submit(world)
    world.perform(h.Deliver(ROUTER, DECODE))
    core = world.cores[DECODE]
    (lease,) = core.leases
    fire = h.Fire(DECODE, Timer(TimerKind.GROWTH, lease))
    assert waits_in_vain(world, fire) is None
    core.waiting.append(lease)
    assert "waits for a page" in waits_in_vain(world, fire)
    core.ledger.lease(len(core.ledger._free), 99)
    assert waits_in_vain(world, fire) is None
