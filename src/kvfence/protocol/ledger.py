"""The one truth about the pages of a pool: their states, epochs, owners and pins.

Rules: a page changes state only along a row of `MOVES`; every lease of a page bumps its epoch; a page
becomes FREE only without owner and without pins; a lease is all or nothing. The arrays are plain
standard-library buffers, so that `kvfence.kv` can view them without a copy; nobody but the ledger writes
to them. Everything is done in bulk: a lease can have tens of thousands of pages.

It does not know who may still write to a page or which step reads it: the cores decide when, the
ledger only checks that the move is legal.
"""

from array import array
from collections.abc import Iterable, Sequence
from enum import Enum, IntEnum, unique
from operator import attrgetter

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import PageRef


@unique
class PageState(IntEnum):
    """State of one page."""

    FREE = 0
    RESERVED = 1  # leased and stamped "unwritten"
    OPEN = 2  # appended to by its owner, on this node
    SEALED = 3  # full or final, with a digest; with pins and without owner: a prefix page in use
    CLOSING = 4  # quarantine: ended, but a writer or a step may be left
    POISONED = 5  # a foreign or torn seal was seen
    CACHED = 6  # a prefix page that nobody uses: evictable


@unique
class Move(Enum):
    """What can happen to a page."""

    LEASE = "lease"
    OPEN = "open"
    SEAL = "seal"
    CLOSE = "close"
    FREE = "free"
    POISON = "poison"
    CLEAR = "clear"  # every incarnation that could have written was cut
    CACHE = "cache"
    USE = "use"  # the first pin of a cached page
    EVICT = "evict"


MOVES: dict[tuple[PageState, Move], PageState] = {
    (PageState.FREE, Move.LEASE): PageState.RESERVED,
    (PageState.RESERVED, Move.OPEN): PageState.OPEN,
    (PageState.RESERVED, Move.SEAL): PageState.SEALED,
    (PageState.OPEN, Move.SEAL): PageState.SEALED,
    (PageState.RESERVED, Move.CLOSE): PageState.CLOSING,
    (PageState.OPEN, Move.CLOSE): PageState.CLOSING,
    (PageState.SEALED, Move.CLOSE): PageState.CLOSING,
    (PageState.CLOSING, Move.FREE): PageState.FREE,
    (PageState.RESERVED, Move.POISON): PageState.POISONED,
    (PageState.OPEN, Move.POISON): PageState.POISONED,
    (PageState.SEALED, Move.POISON): PageState.POISONED,
    (PageState.CLOSING, Move.POISON): PageState.POISONED,
    (PageState.POISONED, Move.CLEAR): PageState.FREE,
    (PageState.SEALED, Move.CACHE): PageState.CACHED,
    (PageState.CACHED, Move.USE): PageState.SEALED,
    (PageState.CACHED, Move.EVICT): PageState.FREE,
}

_page_of = attrgetter("page")


def page_numbers(refs: Iterable[PageRef]) -> list[int]:
    """Return the page numbers of `refs`, in order."""
    return list(map(_page_of, refs))


class PageLedger:
    """States, epochs, owners and pins of `pages` usable pages and `spare_pages` copy pages.

    `state`, `epoch`, `owner` (lease sequence, 0 is nobody) and `pins` have one entry a page, spares
    included; views of them stay valid for the ledger's life. A spare page is a page like the others: it
    only does not count as usable, so that copies and tails never cost the capacity that was promised.
    """

    __slots__ = ("_counts", "_free", "epoch", "owner", "pages", "pins", "spare_pages", "state", "total")

    def __init__(self, pages: int, *, spare_pages: int = 0) -> None:
        invariant(pages > 0, f"a pool needs at least one page, not {pages}")
        invariant(spare_pages >= 0, f"spare pages cannot be negative: {spare_pages}")
        self.pages = pages
        self.spare_pages = spare_pages
        self.total = pages + spare_pages
        self.state = bytearray(self.total)
        self.epoch = array("Q", bytes(8 * self.total))
        self.owner = array("Q", bytes(8 * self.total))
        self.pins = array("I", [0]) * self.total
        self._free = list(range(self.total - 1, -1, -1))  # a stack: the page freed last is leased next
        self._counts = [0] * len(PageState)
        self._counts[PageState.FREE] = self.total

    # ------------------------------------------------------------ questions
    def count(self, state: PageState) -> int:
        """Return how many pages are in `state`, spares included. O(1)."""
        return self._counts[state]

    @property
    def free_pages(self) -> int:
        """FREE pages beyond what is kept as spare: the honest hint for others."""
        return max(0, self._counts[PageState.FREE] - self.spare_pages)

    def owner_of(self, page: int) -> int | None:
        """Return the sequence of the lease that owns the page."""
        return self.owner[page] or None

    def owns(self, sequence: int, ref: PageRef) -> bool:
        """Tell whether the lease owns the page under that epoch, now."""
        return self.owner[ref.page] == sequence and self.epoch[ref.page] == ref.epoch

    def refs(self, pages: Iterable[int]) -> tuple[PageRef, ...]:
        """Return references to `pages` under their present epochs."""
        epoch = self.epoch
        return tuple([PageRef(page, epoch[page]) for page in pages])

    # ------------------------------------------------------------ leases
    def lease(self, n: int, sequence: int) -> tuple[PageRef, ...] | None:
        """Lease `n` FREE pages to `sequence` (→ RESERVED, new epochs); None when there are fewer."""
        invariant(n > 0, f"a lease has at least one page, not {n}")
        invariant(sequence > 0, f"lease sequences count from 1, not {sequence}")
        if n > len(self._free):
            return None
        taken = self._free[: -n - 1 : -1]
        del self._free[-n:]
        target = MOVES[PageState.FREE, Move.LEASE]
        self._count_move(taken, {PageState.FREE: n}, target)
        epoch, owner, state, value = self.epoch, self.owner, self.state, int(target)
        epochs = [old + 1 for old in map(epoch.__getitem__, taken)]
        for page, new in zip(taken, epochs, strict=True):  # one pass: a lease can be half of the pool
            epoch[page] = new
            owner[page] = sequence
            state[page] = value
        return tuple(map(PageRef, taken, epochs))

    def open(self, refs: Iterable[PageRef]) -> None:
        """RESERVED → OPEN: this node will append to them."""
        self._move(Move.OPEN, page_numbers(refs))

    def seal(self, refs: Iterable[PageRef]) -> None:
        """RESERVED (verified hand-over) or OPEN (full) → SEALED."""
        self._move(Move.SEAL, page_numbers(refs))

    def close(self, refs: Iterable[PageRef]) -> None:
        """Put leased pages into quarantine (→ CLOSING)."""
        self._move(Move.CLOSE, page_numbers(refs))

    def free(self, refs: Iterable[PageRef]) -> tuple[int, ...]:
        """CLOSING → FREE. The caller answers for law 4; a pinned page is refused."""
        return self._give_back(Move.FREE, page_numbers(refs))

    # ------------------------------------------------------------ poison
    def poison(self, pages: Sequence[int]) -> None:
        """Set pages with a foreign or torn seal apart (→ POISONED)."""
        self._move(Move.POISON, pages)

    def clear(self, pages: Sequence[int]) -> tuple[int, ...]:
        """POISONED → FREE, once nobody is left who could write there."""
        return self._give_back(Move.CLEAR, pages)

    # ------------------------------------------------------------ prefix pages
    def pin(self, pages: Sequence[int]) -> None:
        """Add a reader to each sealed prefix page; CACHED ones are SEALED again."""
        pins = self.pins
        cached = [page for page in pages if self.state[page] == PageState.CACHED]
        self._move(Move.USE, cached)
        for page in pages:
            invariant(self.state[page] == PageState.SEALED, f"page {page} is pinned but not sealed (law 8)")
            pins[page] += 1

    def unpin(self, pages: Sequence[int]) -> None:
        """Take a reader from each page; what has neither reader nor owner then is CACHED."""
        pins, owner = self.pins, self.owner
        for page in pages:
            invariant(pins[page] > 0, f"page {page} is unpinned more often than pinned (law 8)")
            pins[page] -= 1
        self._move(Move.CACHE, [page for page in pages if not pins[page] and not owner[page]])

    def disown(self, refs: Iterable[PageRef]) -> None:
        """Leave published SEALED pages to the prefix index: no owner; CACHED unless pinned."""
        pages = page_numbers(refs)
        owner, pins, state = self.owner, self.pins, self.state
        for page in pages:
            invariant(state[page] == PageState.SEALED, f"page {page} is published but not sealed (law 8)")
            owner[page] = 0
        self._move(Move.CACHE, [page for page in pages if not pins[page]])

    def evict(self, pages: Sequence[int]) -> tuple[int, ...]:
        """CACHED → FREE, after the prefix index forgot them."""
        return self._give_back(Move.EVICT, pages)

    def fork(self) -> "PageLedger":
        """A ledger of its own, with the same pages in the same states."""
        twin = PageLedger(self.pages, spare_pages=self.spare_pages)
        twin.state = bytearray(self.state)
        twin.epoch = self.epoch[:]
        twin.owner = self.owner[:]
        twin.pins = self.pins[:]
        twin._free = list(self._free)
        twin._counts = list(self._counts)
        return twin

    # ------------------------------------------------------------ inside
    def _give_back(self, move: Move, pages: Sequence[int]) -> tuple[int, ...]:
        if any(map(self.pins.__getitem__, pages)):
            invariant(condition=False, why=f"a pinned page cannot become free by {move.value} (law 4)")
        self._move(move, pages)
        owner = self.owner
        for page in pages:
            owner[page] = 0
        self._free.extend(reversed(pages))
        return tuple(pages)

    def _move(self, move: Move, pages: Sequence[int]) -> None:
        """Move every page along its row, or none: an illegal move raises before anything is changed."""
        state = self.state
        before = bytes(map(state.__getitem__, pages))
        target: PageState | None = None
        for value in set(before):
            found = MOVES.get((PageState(value), move))
            invariant(found is not None, f"a page in {PageState(value).name} cannot take {move.value}")
            target = found
        if target is None:
            return  # no pages, nothing to do
        invariant(len(set(pages)) == len(before), f"a page is named twice in one {move.value}")
        self._count_move(pages, {PageState(value): before.count(value) for value in set(before)}, target)
        value = int(target)
        for page in pages:
            state[page] = value

    def _count_move(self, pages: Sequence[int], left: dict[PageState, int], target: PageState) -> None:
        invariant(sum(left.values()) == len(pages), "every page that moves leaves one state")
        for state, n in left.items():
            invariant(self._counts[state] >= n, f"more pages leave {state.name} than are in it")
            self._counts[state] -= n
        self._counts[target] += len(pages)
