"""What happens to the bytes of a prefill pool: ownership, seals, staged batches."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.kv.pools import PAGE_TOKENS, fill, make_pool

from kvfence.kv import SEAL_DTYPE, FenceLevel
from kvfence.protocol import PageLedger, commands
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.transport import TRAILER_BYTES

LEASE = LeaseId(7, 1)
OWNER = 4
KEY = b"k" * 32
TARGETS = (PageRef(5, 9), PageRef(6, 9))


@dataclass
class Rig:
    level: FenceLevel = FenceLevel.SEALED
    cached_tokens: int = 0

    def __post_init__(self):
        self.pool, self.ledger = make_pool(8), PageLedger(8)
        self.pages = PrefillPages(self.pool, self.ledger, level=self.level)
        self.refs = self.ledger.lease(2, OWNER)
        for ref in self.refs:
            fill(self.pool, ref.page, seed=ref.page)
        tokens = tuple(range(6))
        self.pages.begin(
            commands.StartPrefill(LEASE, AttemptId(1, 1, 1), tokens, self.refs, self.cached_tokens, OWNER)
        )

    def post(self, sources=None, targets=TARGETS):
        sources = self.refs if sources is None else sources
        return commands.PostBatch(LEASE, 0, Peer("decode-0", 7), 0, sources, targets)

    def tail_slots(self):
        """The slots of the last page that the prompt does not fill: tokens 6 and 7."""
        layout, payload = self.pool.layout, self.pool.payload(self.refs[1].page)
        region = layout.regions[0]
        start = region.offset + 2 * region.slot_bytes
        return payload[start : region.offset + PAGE_TOKENS * region.slot_bytes]


def test_pages_of_the_prompt_are_its_own():
    assert Rig().pages.lost_pages(LEASE) == ()


def test_a_page_that_changed_hands_or_epochs_is_lost():
    rig = Rig()
    rig.ledger.owner[rig.refs[0].page] = OWNER + 1
    assert rig.pages.lost_pages(LEASE) == (rig.refs[0].page,)
    rig.ledger.owner[rig.refs[0].page] = OWNER
    rig.ledger.epoch[rig.refs[1].page] += 1
    assert rig.pages.lost_pages(LEASE) == (rig.refs[1].page,)


def test_a_shared_page_is_held_while_it_is_pinned():
    rig = Rig()
    first = rig.refs[0]
    rig.ledger.seal([first])
    rig.ledger.disown([first])
    assert rig.pages.lost_pages(LEASE) == (first.page,)
    rig.ledger.pin([first.page])
    assert rig.pages.lost_pages(LEASE) == ()


def test_a_prompt_that_left_has_nothing_to_lose_or_to_seal():
    rig = Rig()
    rig.pages.leave(LEASE)
    rig.ledger.owner[rig.refs[0].page] = OWNER + 1
    assert rig.pages.lost_pages(LEASE) == ()
    rig.pages.seal_until(LEASE, 6, last=True)
    with pytest.raises(InvariantError, match="unsealed"):
        rig.pages.stage(rig.post(), KEY)


def test_each_page_is_sealed_when_it_is_full_and_the_last_when_the_prompt_ends():
    rig = Rig()
    rig.pages.seal_until(LEASE, 3, last=False)
    with pytest.raises(InvariantError, match="unsealed"):
        rig.pages.stage(rig.post(rig.refs[:1], TARGETS[:1]), KEY)
    rig.pages.seal_until(LEASE, 5, last=False)
    rig.pages.stage(rig.post(rig.refs[:1], TARGETS[:1]), KEY)
    rig.pages.seal_until(LEASE, 6, last=True)
    batch = rig.pages.stage(rig.post(), KEY)
    trailers = np.frombuffer(batch.trailers, SEAL_DTYPE)
    assert trailers["valid_tokens"].tolist() == [4, 2]
    assert trailers["epoch"].tolist() == [9, 9]
    assert (batch.sources, batch.targets) == (tuple(ref.page for ref in rig.refs), TARGETS)


@pytest.mark.parametrize("level", FenceLevel)
def test_unused_slots_are_zeroed_at_every_level(level):
    rig = Rig(level)
    assert rig.tail_slots().any()
    rig.pages.seal_until(LEASE, 6, last=True)
    assert not rig.tail_slots().any()


def test_pages_of_the_prefix_cache_are_not_sealed_again():
    rig = Rig(cached_tokens=PAGE_TOKENS)
    rig.pages.seal_until(LEASE, 6, last=True)
    with pytest.raises(InvariantError, match="unsealed"):
        rig.pages.stage(rig.post(rig.refs[:1], TARGETS[:1]), KEY)
    rig.pages.stage(rig.post(rig.refs[1:], TARGETS[1:]), KEY)


def test_without_seals_a_batch_travels_with_blank_trailers():
    rig = Rig(FenceLevel.CONTRACT)
    assert rig.pages.stage(rig.post(), KEY).trailers == bytes(2 * TRAILER_BYTES)


@pytest.mark.parametrize("level", FenceLevel)
def test_freed_pages_are_zeroed_by_paranoid_alone(level):
    rig = Rig(level)
    rig.pages.freed([rig.refs[0].page])
    assert rig.pool.page(rig.refs[0].page).any() == (level is not FenceLevel.PARANOID)
