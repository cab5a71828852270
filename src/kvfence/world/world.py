"""A deployment without a machine: whoever drives it picks what happens next.

`enabled` lists what follows from what the nodes did, `perform` does one happening, weather included. The
same world is driven by a simulation (one choice, by seed and virtual time) and by an exploration (all
choices). It knows no time and draws no random number.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, assert_never

from kvfence.protocol import Decisions, RouterCore
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import Peer, Role
from kvfence.world import happenings as h
from kvfence.world.config import WorldConfig
from kvfence.world.decode_side import DecodeSide
from kvfence.world.memory import blank_pool
from kvfence.world.prefill_side import PrefillSide
from kvfence.world.records import Link
from kvfence.world.requests import Ask
from kvfence.world.router_side import RouterSide
from kvfence.world.start import make_core, node_name
from kvfence.world.state import Stepper, WriteKey
from kvfence.world.weather import Weather

FIRST_INCARNATION = 1
INCARNATIONS_A_NODE = 1_000  # no two nodes of a role ever have the same incarnation


def _key(happening: h.Land | h.Complete | h.Stop | h.FailWrite | h.Vanish) -> WriteKey:
    return happening.writer, happening.lease, happening.batch


class World(RouterSide, PrefillSide, DecodeSide, Weather):
    """Cores, memory of provenance, wires and one-sided writes; `happenings.py` says what can happen."""

    CARRY_OUT: ClassVar[dict[type, str]] = {
        **RouterSide.CARRY_OUT,
        **PrefillSide.CARRY_OUT,
        **DecodeSide.CARRY_OUT,
    }

    # ------------------------------------------------------------ what follows
    def enabled(self) -> Iterator[h.Following]:
        """Everything that can happen next by itself, in an order that only the state decides."""
        yield from self.following()
        for peer, timer in self.live_timers():
            yield h.Fire(peer, timer)

    def following(self) -> Iterator[h.Following]:
        """The same without timers, for whoever keeps time."""
        for sender, receiver in self.wires:
            if self.is_active(receiver):
                yield h.Deliver(sender, receiver)
        yield from self._enabled_writes()
        for decode, lease in self.verifies:
            if decode not in self.paused:
                yield h.Verify(decode, lease)
        yield from self._enabled_passes()
        for decode, writer in self.cuts:
            if decode not in self.paused:
                yield h.CutDone(decode, writer)
        for (writer, decode), link in self.links.items():
            if link is Link.FALLING and writer not in self.paused:
                yield h.Destroyed(writer, decode)

    def _enabled_writes(self) -> Iterator[h.Following]:
        for key, write in self.writes.items():
            if key[0] in self.paused:
                continue
            if not write.has_landed and not (write.halts and not write.is_orphan):
                yield h.Land(*key)
            elif not write.is_orphan:
                yield h.Complete(*key) if write.has_landed else h.Stop(*key)

    def _enabled_passes(self) -> Iterator[h.Following]:
        for peer in self.cores:
            if peer in self.paused:
                continue
            if peer in self.passes:
                yield h.Retire(peer)
            elif self._rows_ready(peer) or self._chunk_ready(peer) is not None:
                yield h.Launch(peer)

    # ------------------------------------------------------------ performing
    def perform(self, happening: h.Happening) -> None:
        """Let it happen. What must never happen is added to `findings`."""
        match happening:
            case h.Deliver():
                self._deliver(*happening)
            case h.Land():
                self._land(_key(happening))
            case h.Complete():
                self._complete(_key(happening))
            case h.Stop():
                self._stop(_key(happening))
            case h.Verify():
                self._verify(*happening)
            case h.Launch():
                self._launch(happening.node)
            case h.Retire():
                self._retire(happening.node)
            case h.Fire():
                self._fire(*happening)
            case h.CutDone():
                self._cut(*happening)
            case h.Destroyed():
                self._destroyed(*happening)
            case _:
                self._perform_weather(happening)

    def _perform_weather(self, happening: h.Weather) -> None:
        match happening:
            case h.Submit():
                self._submit(*happening)
            case h.Leave():
                self._leave(*happening)
            case h.Drop():
                self._drop(*happening)
            case h.Repeat():
                self._deliver(*happening, again=True)
            case h.FailWrite():
                self._fail_write(_key(happening), quiet=happening.quiet)
            case h.Vanish():
                del self.writes[_key(happening)]
            case h.CutFails():
                self._fail_cut(*happening)
            case h.Reconnect():
                self._reconnect(*happening)
            case h.Announce():
                self._announce(*happening)
            case h.Suspect():
                self._suspect(*happening)
            case h.Crash():
                self._crash(*happening)
            case h.Restart():
                self._restart(*happening)
            case h.Pause():
                self._pause(*happening)
            case h.Resume():
                self._resume(*happening)
            case h.Stray():
                self._stray(*happening)
            case h.RingLate():
                self._ring_late(*happening)
            case _:
                assert_never(happening)

    def _launch(self, peer: Peer) -> None:
        if self.decode_core(peer) is not None:
            self._launch_decode(peer)
        else:
            self._launch_prefill(peer)

    def _retire(self, peer: Peer) -> None:
        if self.decode_core(peer) is not None:
            self._retire_decode(peer)
        else:
            self._retire_prefill(peer)


def make_world(config: WorldConfig, decisions: Decisions, asks: Mapping[int, Ask], stepper: Stepper) -> World:
    """A world whose nodes know one another, with nothing submitted yet."""
    world = World(config, decisions, asks, stepper)
    counts = ((Role.ROUTER, config.routers), (Role.PREFILL, config.prefills), (Role.DECODE, config.decodes))
    for role, n in counts:
        for index in range(n):
            peer = Peer(node_name(role, index), FIRST_INCARNATION + index * INCARNATIONS_A_NODE)
            core = make_core(peer, role, config, decisions)
            world.cores[peer] = core
            if not isinstance(core, RouterCore):
                world.pools[peer] = blank_pool(core.ledger.total + 1, config.page_tokens)
            world.meet_all(peer, core)
    while world.wires:
        world.perform(h.Deliver(*next(iter(world.wires))))
    invariant(not world.findings, f"a world begins without findings, not {world.findings}")
    return world
