"""What can happen can; what cannot any more is seen."""

import pytest

from kvfence.protocol.words import LeaseId, Peer, Timer, TimerKind
from kvfence.simulation.possible import is_possible
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, ROUTER, a_world, submit, through, until

LEASE = LeaseId(1, 1)
NOBODY = Peer("prefill9", 1)


def test_everything_that_the_world_lists_is_possible():
    world = a_world()
    submit(world)
    seen = set()
    while found := list(world.following()):
        for happening in world.enabled():
            assert is_possible(world, happening), happening
            seen.add(type(happening))
        world.perform(found[0])
    assert {h.Deliver, h.Land, h.Complete, h.Verify, h.Launch, h.Retire, h.Fire} <= seen


@pytest.mark.parametrize(
    "happening",
    [
        h.Deliver(ROUTER, DECODE),
        h.Repeat(ROUTER, DECODE),
        h.Drop(ROUTER, DECODE),
        h.Land(PREFILL, LEASE, 1),
        h.Complete(PREFILL, LEASE, 1),
        h.Stop(PREFILL, LEASE, 1),
        h.FailWrite(PREFILL, LEASE, 1, quiet=False),
        h.Vanish(PREFILL, LEASE, 1),
        h.Verify(DECODE, LEASE),
        h.Launch(DECODE),
        h.Retire(DECODE),
        h.Fire(DECODE, Timer(TimerKind.LEASE, LEASE)),
        h.CutDone(DECODE, PREFILL),
        h.CutFails(DECODE, PREFILL),
        h.Destroyed(PREFILL, DECODE),
        h.Leave(1),
        h.Reconnect(PREFILL, DECODE),
        h.Announce(NOBODY, DECODE),
        h.Suspect(NOBODY, DECODE),
        h.Crash(NOBODY),
        h.Restart(PREFILL),
        h.Pause(NOBODY),
        h.Resume(PREFILL),
        h.Stray(DECODE, LEASE),
        h.RingLate(DECODE, Timer(TimerKind.LEASE, LEASE)),
    ],
    ids=lambda happening: type(happening).__name__,
)
def test_in_a_world_where_nothing_has_begun_only_weather_can_come(happening):
    assert not is_possible(a_world(), happening)


def test_weather_is_possible_where_it_makes_sense():
    world = a_world()
    assert is_possible(world, h.Submit(ROUTER, 1))
    submit(world)
    assert not is_possible(world, h.Submit(ROUTER, 1))
    assert is_possible(world, h.Leave(1))
    assert is_possible(world, h.Drop(ROUTER, DECODE))
    assert is_possible(world, h.Pause(PREFILL))
    assert is_possible(world, h.Suspect(DECODE, PREFILL))
    through(world)
    assert not is_possible(world, h.Leave(1))


def test_a_stopped_process_does_nothing_and_a_dead_one_can_only_return():
    world = a_world()
    submit(world)
    landing = until(world, h.Land)
    world.perform(h.Pause(PREFILL))
    assert not is_possible(world, landing)
    assert is_possible(world, h.Resume(PREFILL))
    world.perform(h.Crash(PREFILL))
    assert is_possible(world, landing)
    assert is_possible(world, h.Vanish(*landing))
    assert is_possible(world, h.Restart(PREFILL))
    assert not is_possible(world, h.Pause(PREFILL))


def test_a_timer_rings_late_only_when_it_was_set_anew_or_taken_back():
    world = a_world()
    submit(world)
    until(world, h.Land)
    late = h.RingLate(DECODE, Timer(TimerKind.LEASE, LEASE))
    assert not is_possible(world, late)
    world.perform(h.Leave(1))
    through(world)
    assert is_possible(world, late)
    world.perform(h.Pause(DECODE))
    assert not is_possible(world, late)


def test_a_stray_event_needs_a_lease_that_is_no_row_yet():
    world = a_world()
    submit(world)
    until(world, h.Land)
    assert is_possible(world, h.Stray(DECODE, LEASE))
    until(world, h.Verify)
    world.perform(h.Verify(DECODE, LEASE))
    assert not is_possible(world, h.Stray(DECODE, LEASE))
