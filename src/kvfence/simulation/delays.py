"""When what follows happens, and what happens in its stead: late, lost, repeated, failed, unproven.

Rules: one draw order, so that a seed replays; in calm weather nothing is lost, fails or stays unproven, and
nothing is slow.
"""

from random import Random

from kvfence.protocol import events
from kvfence.simulation.swarm import MS, SECOND, Feature, Swarm
from kvfence.world import World
from kvfence.world import happenings as h

# A transport that hands a message over twice may do so with these: they are idempotent.
REPEATABLE = (events.Close, events.Closed, events.LowestLive, events.Reserve, events.Abort)


class Delays:
    """Draws, for everything that can follow, what happens and after how long."""

    def __init__(self, swarm: Swarm, rng: Random) -> None:
        self._swarm = swarm
        self._rng = rng
        self.is_calm = False

    def draw(self, world: World, happening: h.Following) -> tuple[h.Happening, int]:
        """Return what will happen and after how many microseconds. Timers are not asked for here."""
        match happening:
            case h.Deliver():
                return self._draw_message(world, happening)
            case h.Land():
                return self._draw_landing(world, happening)
            case h.Complete():
                return self._draw_completion(happening)
            case h.CutDone():
                return self._draw_cut(happening)
            case h.Launch():
                return happening, self._after(MS // 2)
            case h.Retire():
                return happening, self._after(self._swarm.compute_us)
            case h.Destroyed():
                return happening, self._after(self._slowed(10 * MS, Feature.SLOW_WRITES))
        return happening, self._after(MS)

    def _after(self, mean_us: int) -> int:
        return int(self._rng.expovariate(1 / mean_us))

    def _slowed(self, mean_us: int, feature: Feature) -> int:
        """The mean, or now and then, where the feature is on, one of seconds."""
        is_slow = (
            not self.is_calm and feature in self._swarm.features and self._rng.random() < self._swarm.slowness
        )
        return self._rng.choice((300 * MS, 3 * SECOND)) if is_slow else mean_us

    @property
    def _landing_us(self) -> int:
        return min(self._swarm.landing_us, 10 * MS) if self.is_calm else self._swarm.landing_us

    def _happens(self, chance: float) -> bool:
        return not self.is_calm and chance > 0 and self._rng.random() < chance

    def _draw_message(self, world: World, happening: h.Deliver) -> tuple[h.Happening, int]:
        delay_us = self._after(self._slowed(self._swarm.latency_us, Feature.STALLS))
        if self._happens(self._swarm.loss):
            return h.Drop(*happening), delay_us
        message = world.wires[happening.sender, happening.receiver][0]
        if isinstance(message, REPEATABLE) and self._happens(self._swarm.repeat):
            return h.Repeat(*happening), delay_us
        return happening, delay_us

    def _draw_landing(self, world: World, happening: h.Land) -> tuple[h.Happening, int]:
        write = world.writes[happening.writer, happening.lease, happening.batch]
        if write.is_orphan:
            is_lost = self._rng.random() < 0.3
            delay_us = self._after(self._rng.choice((MS, 100 * MS, 3 * SECOND)))
            return (h.Vanish(*happening) if is_lost else happening), delay_us
        delay_us = self._after(self._slowed(self._landing_us, Feature.SLOW_WRITES))
        if self._happens(self._swarm.failure):
            is_quiet = write.at == 0 and write.part == 0 and self._rng.random() < 0.5
            return h.FailWrite(*happening, is_quiet), delay_us
        return happening, delay_us

    def _draw_completion(self, happening: h.Complete) -> tuple[h.Happening, int]:
        delay_us = self._after(self._slowed(MS, Feature.SLOW_WRITES))
        if self._happens(self._swarm.failure):
            return h.FailWrite(*happening, False), delay_us  # noqa: FBT003 -- `quiet`: it may have landed
        return happening, delay_us

    def _draw_cut(self, happening: h.CutDone) -> tuple[h.Happening, int]:
        delay_us = self._after(self._rng.choice((20 * MS, 500 * MS, 3 * SECOND)))
        is_unproven = Feature.UNPROVEN_CUTS in self._swarm.features and self._happens(0.6)
        return (h.CutFails(*happening) if is_unproven else happening), delay_us
