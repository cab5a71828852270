"""Weather finds somebody to do it to, and has a budget."""

from dataclasses import replace
from random import Random

import pytest

from kvfence.simulation.gusts import BUDGET, Gusts
from kvfence.simulation.possible import is_possible
from kvfence.simulation.swarm import GUSTS, Feature, draw_swarm
from kvfence.world import happenings as h
from tests.simulation.rig import a_world, submit, through, until

STORM = replace(draw_swarm(0), gusts=tuple((feature, 1.0) for feature, _ in GUSTS))


@pytest.mark.parametrize("feature", [feature for feature, _ in GUSTS if feature is not Feature.PARTITIONS])
def test_each_kind_of_weather_does_something_possible(feature):
    world = a_world()
    submit(world, 2)
    through(world)  # its timers could still ring
    submit(world)
    until(world, h.Land)
    world.perform(h.Announce(*list(world.cores)[1:3]))
    found = list(Gusts(STORM, Random(3)).happenings(world, feature))
    assert found
    assert all(is_possible(world, happening) for happening in found)


def test_a_partition_leaves_somebody_on_either_side():
    world = a_world()
    gusts = Gusts(STORM, Random(1))
    for _ in range(20):
        assert 0 < len(gusts.apart(world)) < len(world.cores)


def test_budgets_end_the_weather():
    gusts = Gusts(STORM, Random(1))
    drawn = [gusts.draw() for _ in range(sum(BUDGET.values()) + 5)]
    assert drawn[-5:] == [None] * 5
    assert {feature: drawn.count(feature) for feature in BUDGET} == BUDGET


def test_without_features_there_is_no_weather():
    assert Gusts(replace(STORM, gusts=()), Random(1)).draw() is None
