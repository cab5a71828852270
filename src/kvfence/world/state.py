"""The state of a world: cores, pools, wires, writes, and what the processes around the cores keep.

Everything but the cores is a dictionary of frozen values, so that `fork` is a handful of copies. How a
core takes an event is the stepper's: in place for a simulation, remembered and shared for an exploration.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from kvfence.protocol import Decisions, DecodeCore, PageState, PrefillCore, RouterCore
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import LeaseId, Peer, Role, Timer
from kvfence.world.config import WorldConfig
from kvfence.world.oracle import Finding, Kind
from kvfence.world.requests import Ask, Client

if TYPE_CHECKING:
    from kvfence.protocol.commands import VerifySeals
    from kvfence.protocol.decode_lease import DecodeLease
    from kvfence.protocol.router_request import RouterRequest
    from kvfence.world.memory import Pool
    from kvfence.world.records import Job, Link, Pass, Row, Write

Core = RouterCore | PrefillCore | DecodeCore
WriteKey = tuple[Peer, LeaseId, int]

ROLE_OF: Mapping[type, Role] = {
    RouterCore: Role.ROUTER,
    PrefillCore: Role.PREFILL,
    DecodeCore: Role.DECODE,
}


class Stepper(Protocol):
    """How a core takes an event."""

    def step(self, core: Core, event: Event) -> tuple[Core, list[Command]]:
        """Return the core as it stands after the event (it may be the same object) and its commands."""
        ...


class InPlace:
    """The stepper of a simulation: the core itself changes."""

    def step(self, core: Core, event: Event) -> tuple[Core, list[Command]]:
        """Step it."""
        return core, core.step(event)


class WorldState:
    """What a world is made of. `findings` grows; everything else is the present."""

    def __init__(
        self, config: WorldConfig, decisions: Decisions, asks: Mapping[int, Ask], stepper: Stepper
    ) -> None:
        self.config = config
        self.decisions = decisions
        self.asks = asks
        self.stepper = stepper
        self.cores: dict[Peer, Core] = {}
        self.dead: dict[Peer, Role] = {}  # crashed, and not restarted yet
        self.paused: dict[Peer, None] = {}
        self.pools: dict[Peer, Pool] = {}
        self.adopted: dict[Peer, Peer] = {}  # whose memory a restarted node kept (a fault)
        self.wires: dict[tuple[Peer, Peer], tuple[Event, ...]] = {}
        self.links: dict[tuple[Peer, Peer], Link] = {}  # (prefill, decode)
        self.writes: dict[WriteKey, Write] = {}
        self.jobs: dict[tuple[Peer, LeaseId], Job] = {}
        self.rows: dict[tuple[Peer, LeaseId], Row] = {}
        self.passes: dict[Peer, tuple[Pass, ...]] = {}
        self.verifies: dict[tuple[Peer, LeaseId], VerifySeals] = {}
        self.cuts: dict[tuple[Peer, Peer], None] = {}  # (decode, writer)
        self.timers: dict[tuple[Peer, Timer], tuple[int, int]] = {}  # generation, after_ms
        self.clients: dict[int, Client] = {}
        self.homes: dict[int, Peer] = {}  # the router of each request
        self.aborted: dict[int, int] = {}  # latest attempt of a request that its router aborted
        self.findings: list[Finding] = []
        self.catches: dict[str, int] = {}  # how often each layer of the fence spoke
        self._inbox: deque[tuple[Peer, Event]] = deque()
        self._is_busy = False

    def fork(self) -> "WorldState":
        """A world that goes its own way. Cores are shared: the stepper must not change them in place."""
        twin = object.__new__(type(self))
        for name, value in self.__dict__.items():
            twin.__dict__[name] = value.copy() if type(value) in (dict, list, deque) else value
        twin.pools = {peer: list(pool) for peer, pool in self.pools.items()}
        return twin

    # ------------------------------------------------------------ questions
    def routers(self) -> dict[Peer, RouterCore]:
        """Living router cores."""
        return {peer: core for peer, core in self.cores.items() if isinstance(core, RouterCore)}

    def decode_core(self, peer: Peer) -> DecodeCore | None:
        """The living decode core of that incarnation."""
        core = self.cores.get(peer)
        return core if isinstance(core, DecodeCore) else None

    def prefill_core(self, peer: Peer) -> PrefillCore | None:
        """The living prefill core of that incarnation."""
        core = self.cores.get(peer)
        return core if isinstance(core, PrefillCore) else None

    def is_active(self, peer: Peer) -> bool:
        """Whether the process lives and is not stopped."""
        return peer in self.cores and peer not in self.paused

    def timer_is_live(self, peer: Peer, timer: Timer) -> bool:
        """Whether the pending timer still means something to its core."""
        core, generation = self.cores.get(peer), self.timers[peer, timer][0]
        if isinstance(core, PrefillCore):
            return isinstance(timer.key, tuple) and self._batch_is_timed(core, *timer.key)
        if isinstance(core, DecodeCore) and isinstance(timer.key, LeaseId):
            granted = core.leases.get(timer.key)
            return granted is not None and granted.timers.get(timer.kind) == generation
        if isinstance(core, RouterCore) and isinstance(timer.key, int):
            request = core.requests.get(timer.key)
            return request is not None and request.timers.get(timer.kind) == generation
        return False

    def old_generation(self, peer: Peer, timer: Timer) -> int | None:
        """The latest generation of a timer that means nothing any more; None where every one still does."""
        record = self._timed_record(peer, timer)
        if record is not None:
            present = record.timers.get(timer.kind, 0)
            return present - 1 if present > 1 else None
        if (peer, timer) not in self.timers or self.timer_is_live(peer, timer):
            return None
        return self.timers[peer, timer][0]

    def _timed_record(self, peer: Peer, timer: Timer) -> "DecodeLease | RouterRequest | None":
        core, key = self.cores.get(peer), timer.key
        if isinstance(core, DecodeCore) and isinstance(key, LeaseId):
            return core.leases.get(key)
        return core.requests.get(key) if isinstance(core, RouterCore) and isinstance(key, int) else None

    @staticmethod
    def _batch_is_timed(core: PrefillCore, lease: LeaseId, batch: int) -> bool:
        record = core.leases.get(lease)
        return record is not None and batch in record.in_flight - record.stopped

    def is_home(self) -> bool:
        """Law 11: every submitted request has ended, and every page is home or shown."""
        if any(client.end is None and not client.is_lost for client in self.clients.values()):
            return False
        return all(self.core_is_home(core) for core in self.cores.values())

    def core_is_home(self, core: Core) -> bool:
        """Tell whether nothing is left on one node but what is shown as uncut or poisoned."""
        if isinstance(core, RouterCore):
            return not core.requests
        if isinstance(core, DecodeCore):
            shown = set(core.uncut)
            held = any(record.writer not in shown or record.steps for record in core.leases.values())
            return not held
        ledger = core.ledger
        at_home = ledger.count(PageState.FREE) + ledger.count(PageState.CACHED)
        return not core.leases and at_home == ledger.total

    def find(self, kind: Kind, node: Peer, what: str) -> None:
        """Take note of what must never happen."""
        self.findings.append(Finding(kind, node, what))

    def caught(self, layer: str) -> None:
        """Count that a layer of the fence spoke: "manifest", "seal" or "guard"."""
        self.catches[layer] = self.catches.get(layer, 0) + 1

    def live_timers(self) -> list[tuple[Peer, Timer]]:
        """Pending timers that mean something, of processes that are not stopped."""
        return [
            (peer, timer)
            for peer, timer in self.timers
            if self.is_active(peer) and self.timer_is_live(peer, timer)
        ]
