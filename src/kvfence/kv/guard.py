"""The step guard: before a forward pass, and again before its tokens leave, is every page still the row's?

Rules: each page of each row's block table is compared with the ledger's owner record (lease, epoch); the
trailers in the pages themselves are compared for every page of a row's first step, for small batches,
and for a rotating share of at least 1/64 of the others. Rows that fail are named; the others go on.

It detects a write whose trailer has landed. A torn write, or one during the pass, can escape it:
preventing those is the protocol's work (no page is leased again while a writer is left). It changes
neither pages nor ledger.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from kvfence.kv.pool import Pool
from kvfence.kv.seal import SealKind, Words, header_words, page_indices
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import IntegrityReason, LeaseId, PageRef

if TYPE_CHECKING:
    from array import array

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

ROTATION = 64  # a row's trailers are all seen within this many of its steps
TRAILERS_PER_CHECK = 128  # up to here every trailer is read at every check; see `_stride`
KIND_BIT = np.uint64((SealKind.OPEN ^ SealKind.SEALED) << 16)  # where the first words of the two differ
UNWRITTEN_BITS = np.uint64(
    (SealKind.UNWRITTEN ^ SealKind.SEALED) << 16
)  # likewise, KIND_BIT being set in both
SMALL_WORDS = 4096  # up to here arrays are compared as bytes
GROWTH_PAGES = 16  # room for growth in a row's table before it is laid out again


class OwnerTable(Protocol):
    """The arrays of the page ledger that the guard reads, as buffers of one u64 a page."""

    @property
    def epoch(self) -> "array[int]":
        """How often each page was leased."""

    @property
    def owner(self) -> "array[int]":
        """The lease sequence that owns each page; 0 is nobody."""


def owner_views(table: OwnerTable) -> tuple[Words, Words]:
    """Views (epoch, owner) of the ledger's arrays; they follow every later change of it."""
    return np.frombuffer(table.epoch, np.uint64), np.frombuffer(table.owner, np.uint64)


@dataclass(frozen=True, slots=True)
class GuardFinding:
    """A row that must be taken out. `pages` failed; `poisoned` of them carry foreign or changed bytes."""

    lease: LeaseId
    reason: IntegrityReason
    pages: tuple[int, ...]
    poisoned: tuple[int, ...]


class _Row:
    """The block table of a row as arrays. Slack is filled with the first page, which checks the same.

    A multiple of ROTATION entries, so that `entry % ROTATION` is the page's place in the rotation
    whatever the rows beside it are.
    """

    __slots__ = ("count", "headers", "pages", "start", "steps")

    def __init__(self, lease: LeaseId, refs: Sequence[PageRef]) -> None:
        self.count = len(refs)
        self.steps = 0  # begun so far, this one included
        self.start = 0  # where the row lies in the batch that names it
        self.pages, self.headers = _padded(page_indices(refs), header_words(SealKind.SEALED, lease, refs).T)


class _Batch:
    """The tables of the rows of a step, side by side."""

    __slots__ = ("base", "epochs", "headers", "leases", "owners", "pages", "row_of_base", "rows", "stride")

    def __init__(self, leases: tuple[LeaseId, ...], rows: list[_Row]) -> None:
        self.leases = leases
        self.rows = rows
        self.pages = np.concatenate([row.pages for row in rows])
        self.headers = np.concatenate([row.headers for row in rows])
        self.owners = np.ascontiguousarray(self.headers[:, 2])
        self.epochs = np.ascontiguousarray(self.headers[:, 3])
        self.stride = _stride(self.pages.size)
        start = 0
        for row in rows:
            row.start = start
            start += row.pages.size
        # A step's share: from each run of `stride` entries one, at the place where its row is by now.
        self.base = np.arange(0, start, self.stride)
        self.row_of_base = np.repeat(np.arange(len(rows)), [row.pages.size // self.stride for row in rows])

    def put(self, entry: int, page: np.intp, header: Words) -> None:
        """Fill a slack entry: the row grew."""
        self.pages[entry] = page
        self.headers[entry] = header
        self.owners[entry], self.epochs[entry] = header[2], header[3]

    def share(self) -> Indices:
        """Entries whose trailers this step reads.

        A row's own count of steps picks them: whatever other rows come and go, and whatever the stride,
        an entry's turn comes when that count is equal to it modulo ROTATION.
        """
        places = np.array([row.steps % self.stride for row in self.rows])
        entries: Indices = self.base + places[self.row_of_base]
        return entries


class StepGuard:
    """Guards the steps of one decode node; every lease is of its `incarnation`.

    A page of a running row is SEALED (by its writer) or OPEN or SEALED (by this node), always under
    (lease, epoch, ordinal in the row's block table).
    """

    def __init__(self, pool: Pool, ledger: OwnerTable, incarnation: int) -> None:
        self._pool = pool
        self._incarnation = incarnation
        self._epoch, self._owner = owner_views(ledger)
        self._rows: dict[LeaseId, _Row] = {}
        self._batch: _Batch | None = None

    def add_row(self, lease: LeaseId, refs: Sequence[PageRef]) -> None:
        """Guard a row with the block table `refs`, the copied tail in its place."""
        invariant(lease.incarnation == self._incarnation, f"{lease} is not of this incarnation")
        invariant(lease not in self._rows, f"{lease} is guarded once")
        invariant(refs, "a row has at least one page")
        self._rows[lease] = _Row(lease, refs)

    def grow_row(self, lease: LeaseId, ref: PageRef) -> None:
        """Append a page to the row's block table."""
        row = self._rows[lease]
        if row.count == row.pages.size:
            row.pages, row.headers = _padded(row.pages, row.headers)
            self._batch = None
        entry = row.count
        row.count += 1
        row.pages[entry] = ref.page
        row.headers[entry] = header_words(SealKind.SEALED, lease, [ref], entry)[:, 0]
        batch = self._batch
        if batch is not None and lease in batch.leases:
            batch.put(row.start + entry, row.pages[entry], row.headers[entry])

    def remove_row(self, lease: LeaseId) -> None:
        """Guard the row no longer; a row that is not (or no more) guarded is left alone."""
        if self._rows.pop(lease, None) is not None:
            self._batch = None

    def check_before(self, leases: Sequence[LeaseId]) -> list[GuardFinding]:
        """Check the rows of the step that is about to be launched."""
        for lease in leases:
            self._rows[lease].steps += 1
        return self._check(leases)

    def check_after(self, leases: Sequence[LeaseId]) -> list[GuardFinding]:
        """Check them again, before anything that the step made is released."""
        return self._check(leases)

    # ------------------------------------------------------------ inside
    def _check(self, leases: Sequence[LeaseId]) -> list[GuardFinding]:
        if not leases:
            return []
        batch = self._batch_of(tuple(leases))
        share = batch.share() if batch.stride > 1 else slice(None)
        if self._is_owned(batch) and self._is_sealed(batch, share) and self._is_fresh_sealed(batch):
            return []
        # Something is wrong: now every trailer is read, so that each bad row and page is named.
        return list(_judge(batch, *self._masks(batch)))

    def _batch_of(self, leases: tuple[LeaseId, ...]) -> _Batch:
        batch = self._batch
        if batch is None or batch.leases != leases:
            batch = self._batch = _Batch(leases, [self._rows[lease] for lease in leases])
        return batch

    def _is_owned(self, batch: _Batch) -> bool:
        """Tell whether every page is owned by its row, under the epoch in its table."""
        pages = batch.pages
        return _same(self._owner.take(pages), batch.owners) and _same(self._epoch.take(pages), batch.epochs)

    def _is_sealed(self, batch: _Batch, entries: slice | Indices) -> bool:
        """Tell whether the trailers of the entries are right."""
        return _same(self._seen(batch.pages[entries]), batch.headers[entries])

    def _is_fresh_sealed(self, batch: _Batch) -> bool:
        """Tell whether all trailers of rows in their first step are right."""
        if batch.stride == 1:
            return True  # they were just read
        fresh = [row for row in batch.rows if row.steps <= 1]
        return all(self._is_sealed(batch, slice(row.start, row.start + row.count)) for row in fresh)

    def _seen(self, pages: Indices) -> Words:
        seen = self._pool.headers[pages]  # a copy
        seen[:, 0] |= KIND_BIT  # OPEN and SEALED are both the row's own
        return seen

    def _masks(self, batch: _Batch) -> tuple[Mask, Mask, Mask]:
        """Which entries are owned, which carry the right trailer, and which the row's "unwritten" stamp."""
        owned: Mask = self._owner.take(batch.pages) == batch.owners
        owned &= self._epoch.take(batch.pages) == batch.epochs
        seen = self._seen(batch.pages)
        sealed: Mask = np.logical_and.reduce(batch.headers == seen, axis=1)
        stamped = batch.headers.copy()
        stamped[:, 0] ^= UNWRITTEN_BITS
        unwritten: Mask = np.logical_and.reduce(stamped == seen, axis=1)
        return owned, sealed, unwritten


def _same(seen: Words, expected: Words) -> bool:
    """Tell whether the arrays are equal.

    Right after a forward pass the caches are cold, and comparing the bytes of small arrays then takes a
    third of the time; large ones would have to be copied for it.
    """
    if seen.size <= SMALL_WORDS:
        return seen.tobytes() == expected.tobytes()
    return bool((seen == expected).all())


def _judge(batch: _Batch, owned: Mask, sealed: Mask, unwritten: Mask) -> Iterator[GuardFinding]:
    for lease, row in zip(batch.leases, batch.rows, strict=True):
        table = slice(row.start, row.start + row.count)
        pages, lost, foreign = batch.pages[table], ~owned[table], ~sealed[table]
        failed = lost | foreign
        if not failed.any():
            continue
        reason = IntegrityReason.GUARD_OWNER if lost.any() else IntegrityReason.GUARD_SEAL
        # A page that the ledger has given to somebody else is not ours to poison, and one that nobody has
        # written since it was stamped is no danger.
        poisoned = tuple(pages[foreign & ~lost & ~unwritten[table]].tolist())
        yield GuardFinding(lease, reason, tuple(pages[failed].tolist()), poisoned)


def _padded(pages: Indices, headers: Words) -> tuple[Indices, Words]:
    """Copies with room for GROWTH_PAGES more, up to a multiple of ROTATION."""
    count = pages.size
    size = -(-(count + GROWTH_PAGES) // ROTATION) * ROTATION
    padded_pages = np.full(size, pages[0], np.intp)
    padded_pages[:count] = pages
    padded_headers = np.repeat(headers[:1], size, axis=0)
    padded_headers[:count] = headers
    return padded_pages, padded_headers


def _stride(entries: int) -> int:
    """Read every trailer of a small batch, and a share of a large one, but never less than 1/ROTATION."""
    stride = 1
    while stride < ROTATION and entries // stride > TRAILERS_PER_CHECK:
        stride *= 2
    return stride
