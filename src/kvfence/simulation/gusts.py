"""Weather that comes at any moment: after any happening, by chance, within a budget for each kind."""

from collections.abc import Iterator
from random import Random

from kvfence.protocol import DecodeCore
from kvfence.protocol.words import Peer, Role
from kvfence.simulation.swarm import Feature, Swarm
from kvfence.world import World, role_of
from kvfence.world import happenings as h

BUDGET = {
    Feature.ABORTS: 20,
    Feature.LOST_WIRES: 3,
    Feature.PARTITIONS: 2,
    Feature.CRASH_ROUTER: 2,
    Feature.CRASH_PREFILL: 4,
    Feature.CRASH_DECODE: 3,
    Feature.PAUSES: 3,
    Feature.FALSE_SUSPICION: 2,
    Feature.STRAYS: 2,
    Feature.STALE_TIMERS: 6,
}
CRASHING = {
    Feature.CRASH_ROUTER: Role.ROUTER,
    Feature.CRASH_PREFILL: Role.PREFILL,
    Feature.CRASH_DECODE: Role.DECODE,
}


class Gusts:
    """Picks what the weather does next, if anything."""

    def __init__(self, swarm: Swarm, rng: Random) -> None:
        self._gusts = swarm.gusts
        self._rng = rng
        self._left = dict(BUDGET)

    def draw(self) -> Feature | None:
        """Return the kind of weather that comes now, or None."""
        for feature, chance in self._gusts:
            if self._rng.random() < chance and self._left[feature] > 0:
                self._left[feature] -= 1
                return feature
        return None

    def happenings(self, world: World, feature: Feature) -> Iterator[h.Happening]:
        """What that weather does, where it finds somebody to do it to. Partitions are not among it."""
        rng = self._rng
        if feature is Feature.ABORTS:
            waiting = [r for r, client in world.clients.items() if client.end is None and not client.is_lost]
            if waiting:
                yield h.Leave(rng.choice(waiting))
        elif feature is Feature.LOST_WIRES and world.wires:
            sender, receiver = rng.choice(list(world.wires))
            yield from [h.Drop(sender, receiver)] * len(world.wires[sender, receiver])
        elif feature in CRASHING:
            yield from map(h.Crash, self._one_of(world, CRASHING[feature]))
        elif feature is Feature.PAUSES:
            yield from map(h.Pause, self._one_of(world, rng.choice((None, Role.PREFILL))))
        elif feature is Feature.FALSE_SUSPICION:
            yield from self._suspicions(world)
        elif feature is Feature.STRAYS:
            yield from self._strays(world)
        elif feature is Feature.STALE_TIMERS:
            yield from self._late_rings(world)

    def _one_of(self, world: World, role: Role | None) -> list[Peer]:
        """One process, rather one with a write under way: there it hurts."""
        found = [peer for peer in world.cores if role is None or role_of(peer) is role]
        ends = {end for key, write in world.writes.items() for end in (key[0], write.decode)}
        writing = [peer for peer in found if peer in ends]
        pool = writing if writing and self._rng.random() < 0.7 else found
        return [self._rng.choice(pool)] if pool else []

    def _strays(self, world: World) -> Iterator[h.Happening]:
        idle = [
            h.Stray(peer, lease)
            for peer, core in world.cores.items()
            if isinstance(core, DecodeCore)
            for lease in core.leases
        ]
        if idle:
            yield self._rng.choice(idle)

    def _late_rings(self, world: World) -> Iterator[h.Happening]:
        late = [
            h.RingLate(peer, timer)
            for peer, timer in world.timers
            if world.is_active(peer) and world.old_generation(peer, timer) is not None
        ]
        if late:
            yield self._rng.choice(late)

    def _suspicions(self, world: World) -> Iterator[h.Happening]:
        pairs = [
            h.Suspect(observer, peer)
            for observer, core in world.cores.items()
            for peer in world.cores
            if role_of(peer) is not role_of(observer) and core.peers.is_alive(peer, role_of(peer))
        ]
        if pairs:
            yield self._rng.choice(pairs)

    def apart(self, world: World) -> frozenset[str]:
        """The nodes that a partition cuts off: one, or a few."""
        names: list[str] = sorted({peer.node for peer in world.cores})
        return frozenset(self._rng.sample(names, self._rng.randint(1, max(1, len(names) // 2))))
