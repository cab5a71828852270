"""A fork goes its own way; home is where every request has ended and every page is free."""

import pickle

from tests.world.play import DECODE, PREFILL, ROUTER, ask, follow, submit_all, world_of

from kvfence.world import Client, happenings


class Copying:
    """A stepper for forks in tests: cores are copied whole."""

    def step(self, core, event):
        twin = pickle.loads(pickle.dumps(core))
        return twin, twin.step(event)


def test_a_fork_changes_nothing_in_the_world_it_comes_from():
    world = submit_all(world_of(ask(1)))
    world.stepper = Copying()
    follow(world, happenings.Deliver)
    twin = world.fork()
    follow(twin)
    assert twin.clients[1].end is not None and twin.pools[DECODE] != world.pools[DECODE]
    assert world.clients == {1: Client()} and list(world.passes) == []
    follow(world)
    assert world.clients == twin.clients and world.pools == twin.pools


def test_home_is_where_nothing_waits():
    world = world_of(ask(1))
    assert world.is_home()
    submit_all(world)
    assert not world.is_home()
    follow(world)
    assert world.is_home()


def test_a_lease_that_waits_for_its_writer_is_not_home():
    world = submit_all(world_of(ask(1)))
    follow(world, happenings.Deliver)
    world.perform(happenings.Crash(PREFILL))
    world.perform(happenings.Suspect(ROUTER, PREFILL))
    world.perform(happenings.Leave(1))
    follow(world, happenings.Deliver)
    assert not world.is_home()
    world.perform(happenings.Suspect(DECODE, PREFILL))
    follow(world)
    assert world.is_home()


def test_only_timers_that_mean_something_are_live():
    world = submit_all(world_of(ask(1)))
    assert {timer.kind.value for _, timer in world.live_timers()} == {"request", "queue"}
    follow(world)
    assert world.timers and world.live_timers() == []
