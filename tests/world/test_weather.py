"""What a crash takes with it, what a restart brings, and what is lost on the way."""

from tests.world.play import DECODE, PREFILL, ROUTER, ask, follow, submit_all, world_of

from kvfence.protocol import Decisions
from kvfence.protocol.words import EndReason, Peer
from kvfence.world import happenings


def test_a_router_that_dies_breaks_the_connections_of_its_clients():
    world = submit_all(world_of(ask(1)))
    world.perform(happenings.Crash(ROUTER))
    assert world.clients[1].is_lost and world.clients[1].end is None
    world.perform(happenings.Suspect(DECODE, ROUTER))
    follow(world)
    assert world.is_home()


def test_a_restarted_node_is_a_new_incarnation_with_a_new_pool():
    world = submit_all(world_of(ask(1, 5)))
    follow(world, happenings.Deliver, happenings.Launch, happenings.Retire)
    old = world.pools[DECODE]
    world.perform(happenings.Crash(DECODE))
    world.perform(happenings.Restart(DECODE))
    again = Peer(DECODE.node, 2)
    assert world.pools.keys() == {PREFILL, again} and world.pools[again] is not old
    follow(world)
    world.perform(happenings.Announce(again, ROUTER))  # it said "not now" before it knew its writer
    follow(world)
    assert world.clients[1].end.reason is EndReason.LENGTH and world.findings == []


class Adopting(Decisions):
    def adopts_old_pool(self):
        return True


def test_a_node_that_keeps_its_old_pool_is_written_to_by_its_past():
    world = submit_all(world_of(ask(1, 5), decisions=Adopting()))
    follow(world, happenings.Deliver, happenings.Launch, happenings.Retire)
    land = next(one for one in world.enabled() if isinstance(one, happenings.Land))
    world.perform(happenings.Crash(DECODE))
    world.perform(happenings.Restart(DECODE))
    assert world.findings == []
    world.perform(land)
    assert world.findings


def test_a_lost_message_is_lost_and_a_repeated_one_does_no_harm():
    world = submit_all(world_of(ask(1)))
    world.perform(happenings.Repeat(ROUTER, DECODE))
    assert world.wires[ROUTER, DECODE]
    follow(world)
    assert world.clients[1].delivered == 3 and world.findings == []
    other = submit_all(world_of(ask(1)))
    other.perform(happenings.Drop(ROUTER, DECODE))
    assert follow(other).clients[1].end is None


def test_hello_is_said_again_by_whoever_is_asked_to():
    world = world_of(ask(1))
    world.perform(happenings.Announce(DECODE, ROUTER))
    (hello,) = world.wires[DECODE, ROUTER]
    assert hello.sender == DECODE and hello.pool_tokens == world.cores[DECODE].pool_tokens
