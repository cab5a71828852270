"""What happens instead of what should: only where its feature is on, and never in calm weather."""

from collections import Counter
from dataclasses import replace
from random import Random

from kvfence.simulation.delays import Delays
from kvfence.simulation.swarm import SECOND, Feature, draw_swarm
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, ROUTER, a_world, submit, until

CALM = replace(
    draw_swarm(0), features=frozenset(), loss=0.0, repeat=0.0, failure=0.0, slowness=0.3, landing_us=100
)
DRAWS = 300


def kinds(swarm, world, happening, *, is_calm=False):
    delays = Delays(swarm, Random(1))
    delays.is_calm = is_calm
    drawn = [delays.draw(world, happening) for _ in range(DRAWS)]
    return Counter(type(what) for what, _ in drawn), max(after for _, after in drawn)


def test_a_message_is_late_or_lost_but_only_some_arrive_twice():
    world = a_world()
    submit(world)
    deliver = h.Deliver(ROUTER, DECODE)
    assert set(kinds(CALM, world, deliver)[0]) == {h.Deliver}
    lossy = replace(CALM, loss=0.3, repeat=0.3)
    assert set(kinds(lossy, world, deliver)[0]) == {h.Deliver, h.Drop, h.Repeat}
    world.perform(deliver)
    reserved = h.Deliver(DECODE, ROUTER)
    assert set(kinds(lossy, world, reserved)[0]) == {h.Deliver, h.Drop}
    until(world, h.Land)
    world.perform(h.Leave(1))
    world.perform(h.Deliver(ROUTER, DECODE))
    close = h.Deliver(DECODE, PREFILL)
    assert set(kinds(lossy, world, close)[0]) == {h.Deliver, h.Drop, h.Repeat}


def test_stalls_take_seconds_where_they_are_on_and_it_is_not_calm():
    world = a_world()
    submit(world)
    stalling = replace(CALM, features=frozenset([Feature.STALLS]), latency_us=200)
    assert kinds(stalling, world, h.Deliver(ROUTER, DECODE))[1] > SECOND
    assert kinds(stalling, world, h.Deliver(ROUTER, DECODE), is_calm=True)[1] < SECOND


def test_writes_fail_and_cuts_stay_unproven_where_that_is_on():
    world = a_world()
    submit(world)
    landing = until(world, h.Land)
    assert set(kinds(CALM, world, landing)[0]) == {h.Land}
    assert set(kinds(replace(CALM, failure=0.3), world, landing)[0]) == {h.Land, h.FailWrite}
    complete = h.Complete(*landing)
    assert set(kinds(replace(CALM, failure=0.3), world, complete)[0]) == {h.Complete, h.FailWrite}
    cut = h.CutDone(DECODE, PREFILL)
    unproven = replace(CALM, features=frozenset([Feature.UNPROVEN_CUTS]))
    assert set(kinds(CALM, world, cut)[0]) == {h.CutDone}
    assert set(kinds(unproven, world, cut)[0]) == {h.CutDone, h.CutFails}
    assert set(kinds(unproven, world, cut, is_calm=True)[0]) == {h.CutDone}


def test_an_orphan_lands_or_vanishes():
    world = a_world()
    submit(world)
    landing = until(world, h.Land)
    world.perform(h.Crash(PREFILL))
    assert set(kinds(CALM, world, landing)[0]) == {h.Land, h.Vanish}
