"""Verification of a hand-over: every page of a closed lease carries the lease's own, intact seal.

Rules: the trailers are read once and judged as read. A page that still has decode's own "unwritten"
stamp was never written: that fails the hand-over, but the page is no danger. A header of another lease,
epoch, ordinal or kind is foreign; a tag or digest that does not verify is torn, and so is a last page whose
unused slots are not zeros, for its digest is that of a page in which they are; both poison their page.
All pages are judged even after the first fault, so that the list of poisoned ones is whole.

It looks once. What is written after it looked is prevented by the writer having closed, and watched for
by the guard.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from kvfence.kv.pool import Pool
from kvfence.kv.seal import (
    SEAL_DTYPE,
    SealKind,
    Trailers,
    digest_page,
    first_words,
    header_words,
    page_indices,
    tags_of,
)
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import IntegrityReason, LeaseId, PageRef

Mask = npt.NDArray[np.bool_]
_SHAPE = attrgetter("slot_bytes", "region_bytes")


@dataclass(frozen=True, slots=True)
class HandoverResult:
    """What verification found. `reason` is None when every page is good; then `poisoned` is empty.

    With faults of several kinds the gravest names the reason: foreign, then torn, then unwritten.
    """

    reason: IntegrityReason | None
    poisoned: tuple[int, ...]
    verified_pages: int


def verify_handover(
    pool: Pool, lease: LeaseId, key: bytes, refs: Sequence[PageRef], tokens: int, page_tokens: int
) -> HandoverResult:
    """Judge the pages that hold a prompt of `tokens`, in order. Reads every byte of them; changes none."""
    invariant(page_tokens == pool.layout.page_tokens, "the pages are those of the pool's layout")
    invariant(len(refs) == pool.layout.pages_for(tokens), f"{len(refs)} pages do not hold {tokens} tokens")
    invariant(refs, "a hand-over has at least one page")
    pages = page_indices(refs)
    seen = pool.seals[pages]  # a copy: what is judged is what was read
    expected = header_words(SealKind.SEALED, lease, refs)
    own = (seen[:, 1:4] == expected[1:].T).all(axis=1)
    unwritten = own & (seen[:, 0] == first_words(SealKind.UNWRITTEN, _ordinals(refs)))
    foreign = ~(unwritten | (own & (seen[:, 0] == expected[0])))
    candidates = ~(unwritten | foreign)
    trailers = seen.view(SEAL_DTYPE).reshape(-1)
    valid_tokens = _valid_tokens(refs, tokens, page_tokens)
    torn = candidates & ~_intact(pool, key, pages, trailers, candidates, valid_tokens)
    if candidates[-1] and not torn[-1] and valid_tokens[-1] < page_tokens:
        torn[-1] = not _is_zero_from(pool, int(pages[-1]), int(valid_tokens[-1]))
    reason = _gravest(foreign, torn, unwritten)
    poisoned = tuple(pages[foreign | torn].tolist())
    return HandoverResult(reason, poisoned, verified_pages=int((candidates & ~torn).sum()))


def _ordinals(refs: Sequence[PageRef]) -> npt.NDArray[np.uint64]:
    return np.arange(len(refs), dtype=np.uint64)


def _valid_tokens(refs: Sequence[PageRef], tokens: int, page_tokens: int) -> npt.NDArray[np.uint32]:
    valid = np.full(len(refs), page_tokens, np.uint32)
    valid[-1] = tokens - (len(refs) - 1) * page_tokens
    return valid


def _intact(
    pool: Pool,
    key: bytes,
    pages: npt.NDArray[np.intp],
    trailers: Trailers,
    candidates: Mask,
    valid_tokens: npt.NDArray[np.uint32],
) -> Mask:
    """Which pages hold what their trailer says, and as many tokens as the manifest says."""
    intact: Mask = candidates & (trailers["valid_tokens"] == valid_tokens)
    intact &= trailers["tag"] == tags_of(trailers, key)
    for index in np.flatnonzero(intact):
        digest = digest_page(pool.payload(int(pages[index])))
        intact[index] = digest == trailers["digest"][index].tobytes()
    return intact


def _is_zero_from(pool: Pool, page: int, first_slot: int) -> bool:
    """Whether the writer zeroed the unused slots (law 2). Only the last page of a lease has any."""
    payload = pool.payload(page)
    # Regions lie side by side: those of one shape are looked at as one array [regions, bytes of a region].
    for (slot_bytes, region_bytes), alike in groupby(pool.layout.regions, _SHAPE):
        regions = list(alike)
        start = regions[0].offset
        block = payload[start : start + len(regions) * region_bytes].reshape(len(regions), region_bytes)
        if block[:, first_slot * slot_bytes :].any():
            return False
    return True


def _gravest(foreign: Mask, torn: Mask, unwritten: Mask) -> IntegrityReason | None:
    if foreign.any():
        return IntegrityReason.SEAL_FOREIGN
    if torn.any():
        return IntegrityReason.SEAL_TORN
    if unwritten.any():
        return IntegrityReason.SEAL_UNWRITTEN
    return None
