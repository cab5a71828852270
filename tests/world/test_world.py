"""A world runs to its end by any seed, without a finding, and comes home; what is asked of it is legal."""

import pytest
from tests.world.play import DECODE, PREFILL, ROUTER, ask, follow, play, submit_all, world_of

from kvfence.protocol.words import EndReason
from kvfence.world import Client, Piece, happenings


@pytest.mark.parametrize("piece", Piece)
@pytest.mark.parametrize("seed", range(6))
def test_every_order_of_events_gives_every_client_its_answer(seed, piece):
    world = submit_all(world_of(ask(1), ask(2, 4, 2), ask(3, 1, 6), piece=piece, has_prefix_cache=True))
    play(world, seed)
    assert world.findings == [] and world.is_home()
    assert {n: (c.delivered, c.end.reason) for n, c in world.clients.items()} == {
        1: (3, EndReason.LENGTH),
        2: (2, EndReason.LENGTH),
        3: (6, EndReason.LENGTH),
    }


def test_what_stops_earlier_than_its_limit_says_so():
    short = ask(1, 3, 5)
    world = submit_all(world_of(type(short)(1, "a", short.prompt, 5, stop_after=2)))
    play(world, 0)
    assert world.clients[1].delivered == 2 and world.clients[1].end.reason is EndReason.STOP


@pytest.mark.parametrize("seed", range(4))
def test_a_small_pool_preempts_and_recomputes_and_the_client_sees_one_answer(seed):
    world = submit_all(world_of(ask(1, 3, 7), ask(2, 3, 7), decode_pages=5, decode_spare_pages=0))
    play(world, seed)
    assert world.findings == [] and world.is_home()
    assert [c.delivered for c in world.clients.values()] == [7, 7]


def test_a_world_begins_with_nothing_to_do():
    assert list(world_of(ask(1)).enabled()) == []


def test_the_first_thing_that_follows_a_request_is_its_reservation():
    world = submit_all(world_of(ask(1)))
    assert [one for one in world.enabled() if not isinstance(one, happenings.Fire)] == [
        happenings.Deliver(ROUTER, DECODE)
    ]
    assert {one.timer.kind.value for one in world.enabled() if isinstance(one, happenings.Fire)} == {
        "request",
        "queue",
    }


def test_a_stopped_process_does_nothing_and_goes_on_afterwards():
    world = submit_all(world_of(ask(1)))
    world.perform(happenings.Pause(DECODE))
    follow(world)
    assert world.wires[ROUTER, DECODE] and world.clients[1] == Client()
    world.perform(happenings.Resume(DECODE))
    follow(world)
    assert world.clients[1].delivered == 3 and world.is_home()


def test_the_writes_of_a_stopped_process_stand_still():
    world = submit_all(world_of(ask(1)))
    follow(world, happenings.Deliver, happenings.Launch, happenings.Retire)
    assert any(isinstance(one, happenings.Land) for one in world.enabled())
    world.perform(happenings.Pause(PREFILL))
    assert not any(isinstance(one, happenings.Land) for one in world.enabled())
