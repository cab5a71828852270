"""Pages that hold provenance instead of numbers: who computed each slot, for which position, for whom.

A page is (seal, slots), both immutable; a pool is a list of pages that only the world replaces. A seal is
what `kvfence.kv.seal` puts into a page's trailer, with the slots themselves as the digest: equal content
has equal digests, and nothing else has. The tag is not modelled: it binds these very fields.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kvfence.protocol.words import IntegrityReason, LeaseId, PageRef


class Slot(NamedTuple):
    """KV of one token. `lease` names the lease under which it was written into *this* pool."""

    request: int
    position: int
    lease: LeaseId | int  # a prefill pool's own pages are named by their owner number


PADDING = Slot(0, -1, 0)  # what a padding row writes


Digest = tuple[tuple[int, int] | None, ...]


class Seal(NamedTuple):
    """A trailer. `digest` None is decode's "reserved, unwritten" stamp, or that of a page it appends to."""

    lease: LeaseId | int
    epoch: int
    ordinal: int
    valid: int
    digest: Digest | None


class Page(NamedTuple):
    """One page of a pool: its trailer and `page_tokens` slots; None is a zeroed slot."""

    seal: Seal | None
    slots: tuple[Slot | None, ...]


Pool = list[Page]


def blank_pool(pages: int, page_tokens: int) -> Pool:
    """A pool as the kernel hands it out: all zeros."""
    return [Page(None, (None,) * page_tokens)] * pages


def digest_of(slots: tuple[Slot | None, ...]) -> Digest:
    """What a digest of the page's bytes sees: the content, not the lease under which it came."""
    return tuple(None if slot is None else slot[:2] for slot in slots)


def put(slots: tuple[Slot | None, ...], index: int, slot: Slot | None) -> tuple[Slot | None, ...]:
    """The slots with one of them replaced."""
    return (*slots[:index], slot, *slots[index + 1 :])


def slot_at(pool: Pool, table: Sequence[PageRef], position: int, page_tokens: int) -> Slot | None:
    """What a step finds at a position of a row, by its block table."""
    return pool[table[position // page_tokens].page].slots[position % page_tokens]


def seal_fault(page: Page, expected: Seal) -> IntegrityReason | None:
    """Judge one page of a hand-over, as `kvfence.kv.handover` does; `expected.digest` is not looked at."""
    seal = page.seal
    if seal is None or seal[:3] != expected[:3]:
        return IntegrityReason.SEAL_FOREIGN
    if seal.digest is None:
        return IntegrityReason.SEAL_UNWRITTEN
    is_intact = seal.digest == digest_of(page.slots) and seal.valid == expected.valid
    is_zero = not any(page.slots[expected.valid :])
    return None if is_intact and is_zero else IntegrityReason.SEAL_TORN
