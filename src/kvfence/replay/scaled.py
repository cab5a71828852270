"""The incident scaled down to a few pages, as it was written up: who left which slot, and who reads it.

A real `PageLedger` hands out the pages; the slots are a list of who wrote them last, which is all that a
pool knows of its content. Nothing is zeroed between two owners, as on any hot path.

It shows the arithmetic of the write-up. What the real engine does is act 2's.
"""

from dataclasses import dataclass

from kvfence.protocol import PageLedger
from kvfence.protocol.errors import unreachable
from kvfence.protocol.words import PageRef

SCALED_PAGES = 8


@dataclass(frozen=True, slots=True)
class Written:
    """Who wrote a slot last, and as which of its tokens (from 0)."""

    tenant: str
    position: int

    @property
    def name(self) -> str:
        """As the write-up names it: A0, A1, …"""
        return f"{self.tenant}{self.position}"


@dataclass(frozen=True, slots=True)
class ScaledLeak:
    """What decode reads for tenant B, slot by slot in the order of its block table."""

    page_tokens: int
    read: tuple[Written, ...]

    @property
    def foreign(self) -> tuple[Written, ...]:
        """The slots that B reads and another tenant wrote."""
        return tuple(written for written in self.read if written.tenant != "B")

    @property
    def foreign_percent(self) -> float:
        """Their share."""
        return 100 * len(self.foreign) / len(self.read)


def scaled_leak(page_tokens: int, pages: int = SCALED_PAGES) -> ScaledLeak:
    """Tenant A fills the pool and leaves; B reserves as much, and its placeholder writes one slot."""
    ledger = PageLedger(pages)
    slots: list[Written | None] = [None] * (pages * page_tokens)
    tokens = pages * page_tokens

    def write(table: tuple[PageRef, ...], tenant: str, count: int) -> None:
        for position in range(count):
            slots[slot_of(table, position, page_tokens)] = Written(tenant, position)

    for_a = _lease(ledger, pages, sequence=1)
    write(for_a, "A", tokens)
    ledger.close(for_a)
    ledger.free(for_a)
    for_b = _lease(ledger, pages, sequence=2)
    write(for_b, "B", 1)
    read = [slots[slot_of(for_b, position, page_tokens)] for position in range(tokens)]
    return ScaledLeak(page_tokens, tuple(written for written in read if written is not None))


def slot_of(table: tuple[PageRef, ...], position: int, page_tokens: int) -> int:
    """Return the slot of the pool in which a block table keeps a position."""
    return table[position // page_tokens].page * page_tokens + position % page_tokens


def _lease(ledger: PageLedger, pages: int, sequence: int) -> tuple[PageRef, ...]:
    leased = ledger.lease(pages, sequence)
    if leased is None:
        unreachable("a pool in which every page is free leases all of them")
    return leased
