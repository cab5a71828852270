"""A second core that stands where the first one stands, and goes its own way from there.

Whoever explores what could happen needs it thousands of times a second, so it is written by hand: what is
frozen is shared, what a core changes is copied, to the depth at which it changes it. Config and decisions
are shared; they hold no state. A prefix index is copied by whoever made it (`PrefixSource` has no fork).
"""

from array import array
from copy import copy
from typing import TypeVar

from kvfence.protocol.decode import DecodeCore
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_records import Poison
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.machine import StepBook
from kvfence.protocol.memory import ClosedMemory
from kvfence.protocol.peers import PeerBook
from kvfence.protocol.prefill import PrefillCore
from kvfence.protocol.prefill_lease import PrefillLease
from kvfence.protocol.prefix_source import PrefixSource
from kvfence.protocol.router import RouterCore
from kvfence.protocol.router_request import RouterRequest

C = TypeVar("C", RouterCore, PrefillCore, DecodeCore)


def _bare(core: C) -> C:
    """Copy what every role has: the rest is still shared."""
    twin: C = object.__new__(type(core))
    twin.__dict__.update(core.__dict__)
    twin.peers = _fork_peers(core.peers)
    twin.trail = list(core.trail)
    twin.counts = dict(core.counts)
    return twin


def _fork_peers(peers: PeerBook) -> PeerBook:
    twin = copy(peers)
    twin._known = {node: copy(known) for node, known in peers._known.items()}
    return twin


def _fork_steps(steps: StepBook) -> StepBook:
    twin = copy(steps)
    twin._steps = dict(steps._steps)
    return twin


def fork_ledger(ledger: PageLedger) -> PageLedger:
    """A ledger with the same pages in the same states."""
    twin = copy(ledger)
    twin.state = bytearray(ledger.state)
    twin.epoch = array("Q", ledger.epoch)
    twin.owner = array("Q", ledger.owner)
    twin.pins = array("I", ledger.pins)
    twin._free = list(ledger._free)
    twin._counts = list(ledger._counts)
    return twin


def _fork_request(record: RouterRequest) -> RouterRequest:
    twin = copy(record)
    twin.timers = dict(record.timers)
    return twin


def fork_router(core: RouterCore) -> RouterCore:
    """A router core with requests, queue and nodes of its own."""
    twin = _bare(core)
    twin.requests = {number: _fork_request(record) for number, record in core.requests.items()}
    twin.queue = list(core.queue)
    twin.nodes = {peer: copy(node) for peer, node in core.nodes.items()}
    return twin


def _fork_written(record: PrefillLease) -> PrefillLease:
    twin = copy(record)
    twin.in_flight = set(record.in_flight)
    twin.stopped = set(record.stopped)
    twin.lost = set(record.lost)
    twin.unproven = set(record.unproven)
    return twin


def _fork_memory(memory: ClosedMemory) -> ClosedMemory:
    twin = copy(memory)
    twin.outcomes = dict(memory.outcomes)
    return twin


def fork_prefill(core: PrefillCore, prefix: PrefixSource, ledger: PageLedger) -> PrefillCore:
    """A prefill core with leases and memories of its own, over a forked prefix index and ledger."""
    twin = _bare(core)
    twin.ledger = ledger
    twin.prefix = prefix
    twin.leases = {lease: _fork_written(record) for lease, record in core.leases.items()}
    twin.attempts = dict(core.attempts)
    twin.over = dict(core.over)
    twin.memory = {peer: _fork_memory(memory) for peer, memory in core.memory.items()}
    twin.destroying = set(core.destroying)
    twin.steps = _fork_steps(core.steps)
    twin._touched = dict(core._touched)
    return twin


def _fork_granted(record: DecodeLease) -> DecodeLease:
    twin = copy(record)
    twin.grown = list(record.grown)
    twin.poisoned = set(record.poisoned)
    twin.timers = dict(record.timers)
    return twin


def fork_decode(core: DecodeCore) -> DecodeCore:
    """A decode core with leases, writers, poison and a ledger of its own."""
    twin = _bare(core)
    twin.ledger = fork_ledger(core.ledger)
    twin.leases = {lease: _fork_granted(record) for lease, record in core.leases.items()}
    twin.attempts = dict(core.attempts)
    twin.over = dict(core.over)
    twin.waiting = list(core.waiting)
    twin.writers = dict(core.writers)
    twin.poisoned = {page: Poison(p.lease, set(p.writers)) for page, p in core.poisoned.items()}
    twin.steps = _fork_steps(core.steps)
    twin._touched = dict(core._touched)
    twin._silent = dict(core._silent)
    return twin
