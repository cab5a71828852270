"""The writer's side of the seal: digest each own page once, then build trailers for any lease from it.

Rules: a page is digested once under an epoch, when it is full or leaves, after its unused slots were
zeroed; the digest stays with (page, epoch) and is never used for another epoch.

It does not send, and it does not know leases beyond the name that goes into a trailer.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kvfence.kv.pool import Pool
from kvfence.kv.seal import DIGEST_BYTES, Trailers, digest_page, make_trailers, page_indices
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId, PageRef


class PageSealer:
    """Digests of the pages of one pool, by page; an entry counts only under the epoch it was taken in."""

    def __init__(self, pool: Pool, *, zeroes: bool = True) -> None:
        """`zeroes` is law 2's: unused slots are zeroed before a page leaves."""
        self._pool, self._zeroes = pool, zeroes
        self._digests = np.zeros(pool.pages, f"V{DIGEST_BYTES}")
        self._epochs = np.zeros(pool.pages, np.uint64)
        self._valid_tokens = np.zeros(pool.pages, np.uint32)

    def seal_page(self, ref: PageRef, valid_tokens: int) -> None:
        """Zero the unused slots, take the digest, keep it. The page must not change afterwards."""
        page_tokens = self._pool.layout.page_tokens
        invariant(1 <= valid_tokens <= page_tokens, f"a page has 1 to {page_tokens} tokens")
        invariant(not self.is_sealed(ref), f"{ref} is digested once")
        if self._zeroes and valid_tokens < page_tokens:
            self._pool.zero_slots(ref.page, valid_tokens)
        digest = digest_page(self._pool.payload(ref.page))
        self._digests[ref.page] = np.frombuffer(digest, f"V{DIGEST_BYTES}")[0]
        self._valid_tokens[ref.page] = valid_tokens
        self._epochs[ref.page] = ref.epoch

    def is_sealed(self, ref: PageRef) -> bool:
        """Tell whether the page has a digest under this epoch."""
        return int(self._epochs[ref.page]) == ref.epoch

    def stage_trailers(
        self,
        lease: LeaseId,
        key: bytes,
        *,
        sources: Sequence[PageRef],
        targets: Sequence[PageRef],
        first_ordinal: int,
    ) -> bytes:
        """64 bytes for each target: the seal that goes with `sources[i]` as page `first_ordinal + i`.

        No page is hashed here. Raises InvariantError for a source that is not sealed under its epoch.
        """
        invariant(len(sources) == len(targets), "a target for each source page")
        pages = page_indices(sources)
        self._check_sealed(pages, sources)
        trailers: Trailers = make_trailers(
            lease,
            key,
            epochs=np.fromiter((ref.epoch for ref in targets), np.uint64, len(targets)),
            ordinals=np.arange(first_ordinal, first_ordinal + len(targets), dtype=np.uint64),
            valid_tokens=self._valid_tokens[pages].astype(np.uint64),
            digests=self._digests[pages].tobytes(),
        )
        return trailers.tobytes()

    def _check_sealed(self, pages: npt.NDArray[np.intp], sources: Sequence[PageRef]) -> None:
        epochs = np.fromiter((ref.epoch for ref in sources), np.uint64, len(sources))
        unsealed = pages[self._epochs[pages] != epochs]
        invariant(not unsealed.size, f"pages {unsealed.tolist()} leave unsealed: seal each when it is full")
