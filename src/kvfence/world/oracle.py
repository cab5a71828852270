"""What the oracle saw: it knows who computed every slot, so it needs no law to see a foreign read.

A `Finding` is data; whoever drives the world decides whether it ends the run. Kinds are stable names.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, unique
from typing import NamedTuple

from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.world.memory import Pool, Slot, slot_at
from kvfence.world.requests import Ask


@unique
class Kind(Enum):
    """What went wrong."""

    FOREIGN_READ = "foreign read"  # a step read a slot that was not written for its row
    UNWRITTEN_READ = "unwritten read"  # a step read a slot that nobody wrote
    FOREIGN_SOURCE = "foreign source"  # an outgoing write read a slot that is not its lease's
    DIRTY_PAGE = "dirty page"  # a page left with something in its unused slots
    LATE_WRITE = "late write"  # a write landed in a page that its lease has no longer
    LATE_STEP = "late step"  # a step, or a verification, in a page that is its lease's no longer, or sealed
    PADDING_WRITE = "padding write"  # a padding row wrote to a page that can be leased
    WRONG_TOKEN = "wrong token"  # noqa: S105 -- a client got a token of another request, out of place, or late
    BROKEN_PROMISE = "broken promise"  # an admitted request was refused for its length
    TWO_ENDS = "two ends"  # a client was told twice how its request ended
    TWO_ATTEMPTS = "two attempts"  # two attempts of one request step at once
    TWO_LEASES = "two leases"  # a decode node holds pages twice for one attempt
    NOT_HOME = "not home"  # in calm weather a request never ends, or a page never comes home
    UNSERVED = "unserved"  # in calm weather a request that fits is sent away, or waits for what is there
    STALE_TIMER = "stale timer"  # a core heeds a deadline that was set anew, or taken back
    FENCE = "the fence spoke"  # manifest, seal or guard, where nothing should have been wrong
    LAW = "law"  # a law of `kvfence.protocol.laws` does not hold, or the core says it was misused


LEAKS = frozenset(
    (Kind.FOREIGN_READ, Kind.UNWRITTEN_READ, Kind.FOREIGN_SOURCE, Kind.DIRTY_PAGE, Kind.WRONG_TOKEN)
)


class Finding(NamedTuple):
    """One thing that must never happen, where it happened, and in words."""

    kind: Kind
    node: Peer
    what: str


def same_prefix(asks: Mapping[int, Ask], mine: int, other: int, position: int) -> bool:
    """Tell whether KV of `other` at a position is what `mine` would have computed, in its own domain."""
    if mine == other:
        return True
    own, foreign = asks[mine], asks.get(other)
    if foreign is None or foreign.tenant != own.tenant:
        return False
    return foreign.tokens(position + 1) == own.tokens(position + 1)


def read_fault(
    slot: Slot | None, asks: Mapping[int, Ask], request: int, position: int, lease: LeaseId | None
) -> Kind | None:
    """Judge one slot that a step reads. `lease` None: in a prefill pool pages may be shared in a domain."""
    if slot is None:
        return Kind.UNWRITTEN_READ
    is_right = slot.position == position and same_prefix(asks, request, slot.request, position)
    is_right = is_right and (lease is None or slot.lease == lease)
    return None if is_right else Kind.FOREIGN_READ


def judge_reads(
    pool: Pool,
    table: Sequence[PageRef],
    asks: Mapping[int, Ask],
    request: int,
    positions: int,
    lease: LeaseId | None,
) -> tuple[Kind, str] | None:
    """Judge positions 0 … positions-1 of a row as its block table finds them; the first fault."""
    page_tokens = len(pool[0].slots)
    for first in range(0, positions, page_tokens):
        ref = table[first // page_tokens]
        for position, slot in enumerate(pool[ref.page].slots[: positions - first], first):
            # The row's own slot is by far the most common, and needs no look at what others asked.
            is_own = slot is not None and slot[0] == request and slot[1] == position
            if is_own and (lease is None or slot[2] is lease or slot[2] == lease):  # type: ignore[index]
                continue
            kind = read_fault(slot, asks, request, position, lease)
            if kind is not None:
                return kind, f"request {request} reads {slot} at position {position} in {ref}"
    return None


def judge_unused(pool: Pool, table: Sequence[PageRef], positions: int, lease: LeaseId) -> str | None:
    """Law 2: every slot from `positions` on is zero or the lease's own; in words where one is not."""
    page_tokens = len(pool[0].slots)
    for position in range(positions, len(table) * page_tokens):
        slot = slot_at(pool, table, position, page_tokens)
        if slot is not None and slot.lease != lease:
            return f"has {slot} in an unused slot of {table[position // page_tokens]}"
    return None
