"""What `paranoid` adds: sealed pages are digested again while they are in use, and zeroed when they are free.

Rules: each step looks at a bounded number of pages, in turn over the whole pool, and only at those that
the ledger has as SEALED under a live lease. Such a page must still carry a SEALED trailer of its owner
and epoch, and hold what that trailer's digest says.

It finds changed bytes late and surely; it prevents nothing, and it never looks at OPEN pages.
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from kvfence.kv.guard import GuardFinding, OwnerTable, owner_views
from kvfence.kv.pool import Pool
from kvfence.kv.seal import SealKind, digest_page
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageState
from kvfence.protocol.words import IntegrityReason, LeaseId

SAMPLE_PAGES = 8  # digests a step
WINDOW_PAGES = 4096  # ledger entries that one step looks through for them


class StateTable(OwnerTable, Protocol):
    """The owner table, with the states of the pages."""

    @property
    def state(self) -> bytearray:
        """PageState of each page."""


class PageSweep:
    """Sweeps one decode pool; the leases that the ledger names are of `incarnation`."""

    def __init__(
        self, pool: Pool, ledger: StateTable, incarnation: int, *, sample_pages: int = SAMPLE_PAGES
    ) -> None:
        invariant(sample_pages > 0, "a sweep looks at one page a step at least")
        self._pool = pool
        self._incarnation = incarnation
        self._epoch, self._owner = owner_views(ledger)
        self._state = np.frombuffer(ledger.state, np.uint8)
        self._sample_pages = sample_pages
        self._next_page = 0

    def check_some(self) -> list[GuardFinding]:
        """Digest the next pages again; the rows whose pages are no longer what was sealed."""
        bad: dict[int, list[int]] = {}
        for page in self._take():
            if not self._intact(page):
                bad.setdefault(int(self._owner[page]), []).append(page)
        return [
            GuardFinding(
                LeaseId(self._incarnation, sequence), IntegrityReason.SWEEP_DIGEST, tuple(pages), tuple(pages)
            )
            for sequence, pages in bad.items()
        ]

    def _take(self) -> list[int]:
        """Take the next sealed pages of the window, and move the window on past them."""
        start = self._next_page
        stop = min(start + WINDOW_PAGES, self._state.size)
        live = (self._state[start:stop] == PageState.SEALED) & (self._owner[start:stop] > 0)
        found: list[int] = (np.flatnonzero(live)[: self._sample_pages] + start).tolist()
        reached = found[-1] + 1 if len(found) == self._sample_pages else stop
        self._next_page = reached if reached < self._state.size else 0
        return found

    def _intact(self, page: int) -> bool:
        trailer = self._pool.trailers[page].copy()
        return bool(
            trailer["kind"] == SealKind.SEALED
            and trailer["incarnation"] == self._incarnation
            and trailer["sequence"] == self._owner[page]
            and trailer["epoch"] == self._epoch[page]
            and trailer["digest"].tobytes() == digest_page(self._pool.payload(page))
        )


def scrub_pages(pool: Pool, pages: Iterable[int]) -> None:
    """Zero whole pages, trailers included: they became free, and nobody may read or write them now."""
    for page in pages:
        pool.page(page)[:] = 0
