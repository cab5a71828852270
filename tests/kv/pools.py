"""Small pools, ledgers and hand-overs for the tests of this folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.kv.pool import Pool
from kvfence.kv.seal import digest_page, lease_key, make_trailer, stamp_unwritten
from kvfence.kv.sealer import PageSealer
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.words import LeaseId, PageRef

INCARNATION = 7
SECRET = b"0123456789abcdef"
PAGE_TOKENS = 4
LAYOUT = PageLayout((LayerShape(1, 2, 3), LayerShape(2, 4, 4)), PAGE_TOKENS, "float32")


def make_pool(pages: int = 16) -> Pool:
    return Pool.create(LAYOUT, pages)


def lease_of(sequence: int) -> LeaseId:
    return LeaseId(INCARNATION, sequence)


def key_of(lease: LeaseId) -> bytes:
    return lease_key(SECRET, lease)


@dataclass
class Handover:
    """A decode pool with one lease in it, and the prefill pool that writes it."""

    tokens: int
    pages: int = 32
    lease: LeaseId = field(init=False)
    target: Pool = field(init=False)
    source: Pool = field(init=False)
    ledger: PageLedger = field(init=False)
    refs: tuple[PageRef, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.lease = lease_of(1)
        self.target, self.source = make_pool(self.pages), make_pool(self.pages)
        self.ledger = PageLedger(self.pages)
        self.sealer = PageSealer(self.source)
        self.key = key_of(self.lease)
        leased = self.ledger.lease(LAYOUT.pages_for(self.tokens), self.lease.sequence)
        assert leased is not None
        self.refs = leased
        stamp_unwritten(self.target, self.lease, self.refs)
        self.sources = tuple(PageRef(page, 1) for page in range(len(self.refs)))
        for ordinal, ref in enumerate(self.sources):
            fill(self.source, ref.page, seed=100 + ordinal)
            self.sealer.seal_page(ref, self.valid_tokens(ordinal))

    def valid_tokens(self, ordinal: int) -> int:
        return min(PAGE_TOKENS, self.tokens - ordinal * PAGE_TOKENS)

    def write(self, ordinals: Sequence[int] | None = None) -> None:
        """What a transport does: payload, then the staged trailer."""
        for ordinal in range(len(self.refs)) if ordinals is None else ordinals:
            trailers = self.sealer.stage_trailers(
                self.lease,
                self.key,
                sources=[self.sources[ordinal]],
                targets=[self.refs[ordinal]],
                first_ordinal=ordinal,
            )
            put(self.target, self.refs[ordinal].page, self.source.payload(ordinal), trailers)


def fill(pool: Pool, page: int, seed: int) -> None:
    payload = pool.payload(page)
    payload[:] = np.random.default_rng(seed).integers(1, 255, payload.size, dtype=np.uint8)


def put(pool: Pool, page: int, payload: np.ndarray, trailer: bytes) -> None:
    pool.payload(page)[:] = payload
    pool.trailer(page)[:] = np.frombuffer(trailer, np.uint8)


def write_sealed(
    pool: Pool,
    lease: LeaseId,
    ref: PageRef,
    ordinal: int,
    *,
    seed: int = 1,
    valid_tokens: int = PAGE_TOKENS,
    key: bytes | None = None,
) -> None:
    """A page with random bytes and the seal that says so."""
    fill(pool, ref.page, seed)
    pool.zero_slots(ref.page, valid_tokens)
    trailer = make_trailer(
        lease,
        key_of(lease) if key is None else key,
        epoch=ref.epoch,
        ordinal=ordinal,
        valid_tokens=valid_tokens,
        digest=digest_page(pool.payload(ref.page)),
    )
    pool.trailer(ref.page)[:] = np.frombuffer(trailer, np.uint8)
