"""Pages that decode writes itself: the copied tail of a prompt and each page that a row grows by.

Rules: such a page carries this node's own OPEN stamp under (lease, epoch, ordinal) from the moment it is
leased, and zeros in every slot that was not written. When it is full it can be sealed in place: only the
paranoid sweep reads that digest (no writer and no verification ever sees the page), so the other levels
leave it OPEN and save the digest.

It does not decide when a page is added, and no remote writer is ever given one of these.
"""

from kvfence.kv.pool import Pool
from kvfence.kv.seal import SealKind, digest_page, make_trailer, stamp
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId, PageRef


def open_page(pool: Pool, lease: LeaseId, ref: PageRef, ordinal: int, *, zeroes: bool = True) -> None:
    """Make a leased page an empty one of the row's: zeros (law 2), and the OPEN stamp."""
    if zeroes:
        pool.payload(ref.page)[:] = 0
    stamp(pool, SealKind.OPEN, lease, [ref], ordinal)


def copy_tail(
    pool: Pool,
    lease: LeaseId,
    *,
    source: PageRef,
    target: PageRef,
    ordinal: int,
    valid_tokens: int,
    zeroes: bool = True,
) -> None:
    """Copy the valid slots of a verified, partly filled page into the row's own; zero the rest (law 2)."""
    invariant(0 < valid_tokens < pool.layout.page_tokens, "a full or empty page has no tail to copy")
    pool.payload(target.page)[:] = pool.payload(source.page)
    if zeroes:
        pool.zero_slots(target.page, valid_tokens)
    stamp(pool, SealKind.OPEN, lease, [target], ordinal)


def seal_own_page(pool: Pool, lease: LeaseId, key: bytes, ref: PageRef, ordinal: int) -> None:
    """Digest a full page of the row's own and put the SEALED trailer over its OPEN stamp."""
    trailer = make_trailer(
        lease,
        key,
        epoch=ref.epoch,
        ordinal=ordinal,
        valid_tokens=pool.layout.page_tokens,
        digest=digest_page(pool.payload(ref.page)),
    )
    pool.trailer(ref.page)[:] = memoryview(trailer)
