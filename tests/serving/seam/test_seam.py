"""Real nodes under random schedules: no slot is read that was not written for its reader, all comes home.

A failure tells its seed, level and weather, and the last events; `World(seed, level, weather)` does it again.
"""

import itertools
from collections import Counter

import pytest
from tests.serving.seam.oracle import ForeignRead
from tests.serving.seam.weather import CROWDED_STORM, SLEEPY_WRITERS, WEATHERS, Weather
from tests.serving.seam.world import HISTORY_EVENTS, World

from kvfence.kv import FenceLevel
from kvfence.protocol import Decisions
from kvfence.serving.node_decisions import node_decisions

STEPS = 1_500
SEEDS = 2  # of each weather at each level; they differ between levels
SLOW_SEEDS = 25
BROKEN_SEEDS = 8
UNFENCED = (FenceLevel.OFF, FenceLevel.CONTRACT)
FENCED = (FenceLevel.SEALED, FenceLevel.PARANOID)
FAULTS_OF_OURS = ("integrity", "illegal", "executor")  # ends that no weather excuses


def live(world):
    """Run and settle a world in which nothing may be wrong; its stats."""
    try:
        world.run(STEPS)
        left = world.settle()
        assert not left, f"not home: {left}"
        faults = [name for name in world.stats if name.split()[-1] in FAULTS_OF_OURS]
        assert not faults, f"a healthy deployment had {faults}"
    except Exception as error:
        raise AssertionError(told(world, error)) from error
    finally:
        world.close()
    return world.stats


def told(world, error):
    """What somebody needs who wants to see it again."""
    return "\n".join(
        (
            f"seed {world.seed}, {world.level}, {world.weather}",
            *world.history,
            f"{type(error).__name__}: {error}",
        )
    )


def live_through(weather, seeds):
    """As many worlds at each level; together they must have met what the weather is for."""
    stats = Counter()
    for index, level in enumerate(FenceLevel):
        for seed in range(seeds):
            stats += live(World(1_000 * index + seed, level, weather))
    missed = [name for name in weather.must_see if not stats[name]]
    assert not missed, f"nothing of this happened: {missed} in {stats}"


@pytest.mark.parametrize("name", WEATHERS)
def test_no_foreign_slot_is_read_and_everything_comes_home(name):
    live_through(WEATHERS[name], SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", WEATHERS)
def test_the_same_with_many_seeds(name):
    live_through(WEATHERS[name], SLOW_SEEDS)


@pytest.mark.parametrize(("prefills", "decodes"), [(1, 1), (1, 3), (3, 1)])
def test_other_shapes_of_a_deployment(prefills, decodes):
    shape = Weather(prefills=prefills, decodes=decodes, kill=0.1, stop=0.1, lose=0.1, stop_writers=0.1)
    live_through(shape, 1)


def test_a_seed_is_a_history():
    def history():
        world = World(5, FenceLevel.SEALED, CROWDED_STORM)
        return live(world), list(world.history)

    assert history() == history()


# ------------------------------------------------------------ the rig is alive
class TimeIsProof(Decisions):
    """Law 4 broken as engines have broken it: what should have ended by now is taken for ended."""

    def deadline_is_quiet(self):
        return True

    def abort_is_quiet(self):
        return True

    def lost_is_quiet(self):
        return True


def live_broken(seed, level):
    """A world without law 4: what was read that is foreign, and its stats."""
    decisions = type("Broken", (TimeIsProof, type(node_decisions(level, ()))), {})()
    world = World(seed, level, SLEEPY_WRITERS, decisions=decisions, checks_laws=False)
    try:
        world.run(STEPS)
    except ForeignRead as error:
        return error, world.stats
    finally:
        world.close()
    return None, world.stats


@pytest.mark.parametrize("level", UNFENCED)
def test_without_law_4_and_seals_foreign_slots_are_read(level):
    found = [error for error, _ in (live_broken(seed, level) for seed in range(BROKEN_SEEDS)) if error]
    assert found, "the oracle saw nothing of a broken law"


@pytest.mark.parametrize("level", FENCED)
def test_without_law_4_the_fence_stops_every_foreign_read(level):
    stopped = 0
    for seed in range(BROKEN_SEEDS):
        error, stats = live_broken(seed, level)
        assert error is None, f"seed {seed}, {level}: {error}"
        would_read, _ = live_broken(seed, FenceLevel.CONTRACT)
        if would_read is not None:
            stopped += 1
            assert stats["attempt integrity"], f"seed {seed}, {level}: nobody was told of {would_read}"
    assert stopped, "there was nothing to stop"


def test_a_failure_tells_its_seed_and_what_came_before():
    found = itertools.chain.from_iterable(broken_lives())
    message = next(found)
    assert message.startswith("seed "), message
    assert "ForeignRead: " in message
    assert len(message.splitlines()) == HISTORY_EVENTS + 2


def broken_lives():
    """What `live` says of worlds without law 4, until one fails."""
    for seed in range(BROKEN_SEEDS):
        world = World(seed, FenceLevel.CONTRACT, SLEEPY_WRITERS, decisions=TimeIsProof(), checks_laws=False)
        try:
            live(world)
        except AssertionError as error:
            yield [str(error)]
