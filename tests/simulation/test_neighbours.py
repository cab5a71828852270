"""Silence is noticed after five seconds; hellos are sent where they help; partitions part and heal."""

from kvfence.protocol.words import Role
from kvfence.simulation.neighbours import LOST_AFTER_US, Neighbours
from kvfence.simulation.swarm import SECOND
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, ROUTER, a_world, submit, through, until


def deliver(world, due):
    for happening in due:
        world.perform(happening)
    through(world)


def test_where_all_know_one_another_nothing_is_said():
    assert Neighbours(a_world()).tick(0) == ([], False)


def test_who_is_silent_for_long_is_suspected_by_those_who_talk_to_it():
    world = a_world()
    neighbours = Neighbours(world)
    world.perform(h.Pause(PREFILL))
    assert neighbours.tick(0) == ([], True)
    assert neighbours.tick(LOST_AFTER_US) == ([], True)
    due, is_troubled = neighbours.tick(LOST_AFTER_US + SECOND)
    assert due == [h.Suspect(ROUTER, PREFILL), h.Suspect(DECODE, PREFILL)]
    assert is_troubled


def test_who_was_heard_meanwhile_is_not():
    world = a_world()
    neighbours = Neighbours(world)
    world.perform(h.Pause(PREFILL))
    neighbours.tick(0)
    world.perform(h.Resume(PREFILL))
    neighbours.tick(LOST_AFTER_US)
    world.perform(h.Pause(PREFILL))
    assert neighbours.tick(LOST_AFTER_US + SECOND) == ([], True)


def test_a_lost_node_says_hello_where_that_brings_it_back():
    world = a_world()
    neighbours = Neighbours(world)
    for observer in (ROUTER, DECODE):
        world.perform(h.Suspect(observer, PREFILL))
    due, _ = neighbours.tick(0)
    assert due == [h.Announce(PREFILL, ROUTER), h.Announce(PREFILL, DECODE)]
    world.perform(due[0])
    assert neighbours.tick(0)[0] == []  # one hello is under way already, the other one was said


def test_a_lost_writer_says_hello_in_each_stage_of_its_cut_and_stays_lost():
    world = a_world()
    neighbours = Neighbours(world)
    hello = h.Announce(PREFILL, DECODE)
    assert neighbours.tick(0) == ([], False)
    world.perform(h.Suspect(DECODE, PREFILL))
    for proven in (h.CutFails(DECODE, PREFILL), h.CutDone(DECODE, PREFILL), None):
        due, _ = neighbours.tick(0)
        assert due == [hello]
        world.perform(hello)
        world.perform(h.Deliver(PREFILL, DECODE))
        assert not world.cores[DECODE].peers.is_alive(PREFILL, Role.PREFILL)
        assert neighbours.tick(0) == ([], False)
        if proven is not None:
            world.cuts[DECODE, PREFILL] = None  # asked again
            world.perform(proven)
    assert world.findings == []


def test_a_restarted_node_is_introduced_if_its_hello_was_lost():
    world = a_world()
    world.perform(h.Crash(PREFILL))
    world.perform(h.Restart(PREFILL))
    for wire in list(world.wires):
        while wire in world.wires:
            world.perform(h.Drop(*wire))
    due, _ = Neighbours(world).tick(0)
    assert {(type(one), one.receiver) for one in due} >= {(h.Announce, ROUTER), (h.Announce, DECODE)}
    deliver(world, due)
    assert Neighbours(world).tick(0) == ([], False)


def test_a_partition_stands_between_its_nodes_and_all_others():
    world = a_world()
    neighbours = Neighbours(world)
    neighbours.part(frozenset(["prefill0"]), heal=False)
    assert neighbours.is_apart(PREFILL, DECODE)
    assert neighbours.is_apart(DECODE, PREFILL)
    assert not neighbours.is_apart(ROUTER, DECODE)
    neighbours.part(frozenset(["prefill0"]), heal=True)
    assert not neighbours.is_apart(PREFILL, DECODE)


def test_a_connection_is_renewed_only_by_a_writer_that_decode_lets_in():
    world = a_world()
    neighbours = Neighbours(world)
    submit(world)
    write = until(world, h.Land)
    world.perform(h.FailWrite(*write, quiet=False))
    assert list(neighbours.renewable()) == []
    world.perform(h.Destroyed(PREFILL, DECODE))
    assert list(neighbours.renewable()) == [h.Reconnect(PREFILL, DECODE)]
    world.perform(h.Suspect(DECODE, PREFILL))
    assert list(neighbours.renewable()) == []
