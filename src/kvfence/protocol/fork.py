"""A second core that stands where the first one stands, and goes its own way from there.

Whoever explores what could happen needs it thousands of times a second, so it is written by hand: what is
frozen is shared, what a core changes is copied, to the depth at which it changes it. Config and decisions
are shared; they hold no state. A prefix index is copied by whoever made it (`PrefixSource` has no fork).
"""

from copy import copy
from typing import TypeVar

from kvfence.protocol.decode import DecodeCore
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_records import Poison
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.prefill import PrefillCore
from kvfence.protocol.prefill_lease import PrefillLease
from kvfence.protocol.prefix_source import PrefixSource
from kvfence.protocol.router import RouterCore
from kvfence.protocol.router_request import RouterRequest

C = TypeVar("C", RouterCore, PrefillCore, DecodeCore)

_CONTAINERS = (dict, list, set)


def _bare(core: C) -> C:
    """Copy every container of the core one level deep; what lies deeper is still shared."""
    twin: C = object.__new__(type(core))
    for name, value in core.__dict__.items():
        twin.__dict__[name] = value.copy() if type(value) in _CONTAINERS else value
    twin.peers = core.peers.fork()
    return twin


def _fork_request(record: RouterRequest) -> RouterRequest:
    twin = copy(record)
    twin.timers = dict(record.timers)
    return twin


def fork_router(core: RouterCore) -> RouterCore:
    """A router core with requests, queue and nodes of its own."""
    twin = _bare(core)
    twin.requests = {number: _fork_request(record) for number, record in core.requests.items()}
    twin.nodes = {peer: copy(node) for peer, node in core.nodes.items()}
    return twin


def _fork_written(record: PrefillLease) -> PrefillLease:
    twin = copy(record)
    twin.in_flight = set(record.in_flight)
    twin.stopped = set(record.stopped)
    twin.lost = set(record.lost)
    twin.unproven = set(record.unproven)
    return twin


def fork_prefill(core: PrefillCore, prefix: PrefixSource, ledger: PageLedger) -> PrefillCore:
    """A prefill core with leases and memories of its own, over a forked prefix index and ledger."""
    twin = _bare(core)
    twin.ledger = ledger
    twin.prefix = prefix
    twin.leases = {lease: _fork_written(record) for lease, record in core.leases.items()}
    twin.memory = {peer: memory.fork() for peer, memory in core.memory.items()}
    twin.steps = core.steps.fork()
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
    twin.ledger = core.ledger.fork()
    twin.leases = {lease: _fork_granted(record) for lease, record in core.leases.items()}
    twin.poisoned = {page: Poison(p.lease, set(p.writers)) for page, p in core.poisoned.items()}
    twin.steps = core.steps.fork()
    return twin
