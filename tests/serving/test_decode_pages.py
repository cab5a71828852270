"""What happens to the bytes of a decode pool, by fence level."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.kv.pools import INCARNATION, PAGE_TOKENS, fill, lease_of, make_pool, write_sealed

from kvfence.kv import FenceLevel, SealKind, lease_key
from kvfence.protocol import PageLedger, commands
from kvfence.protocol.words import AttemptId, IntegrityReason, LeaseId, Manifest, PageRef, Peer
from kvfence.serving.decode_pages import DecodePages

SECRET = b"n" * 32
LEASE = lease_of(1)
SEALING = (FenceLevel.SEALED, FenceLevel.PARANOID)


@dataclass
class Rig:
    level: FenceLevel

    def __post_init__(self):
        self.pool, self.ledger = make_pool(8), PageLedger(8)
        self.pages = DecodePages(
            self.pool, self.ledger, level=self.level, incarnation=INCARNATION, node_secret=SECRET
        )
        *self.refs, self.tail = self.ledger.lease(3, LEASE.sequence)

    def write(self, tokens):
        key = self.pages.key(LEASE)
        for ordinal, ref in enumerate(self.refs):
            valid = min(PAGE_TOKENS, tokens - ordinal * PAGE_TOKENS)
            write_sealed(self.pool, LEASE, ref, ordinal, valid_tokens=valid, key=key)

    def adopt(self, tokens):
        manifest = Manifest(LEASE, Peer("p", 1), tokens, len(self.refs), b"", 0, tokens)
        start = commands.StartRow(LEASE, AttemptId(1, 1, 1), manifest, tuple(self.refs), self.tail)
        return self.pages.adopt(start, tokens)

    def kind(self, ref: PageRef) -> int:
        return int(self.pool.trailers[ref.page]["kind"])


def levels(*chosen):
    return pytest.mark.parametrize("level", chosen or tuple(FenceLevel))


@levels()
def test_pages_are_stamped_where_seals_are_read(level):
    rig = Rig(level)
    rig.pages.stamp(LEASE, rig.refs)
    expected = SealKind.UNWRITTEN if level in SEALING else SealKind.BLANK
    assert {rig.kind(ref) for ref in rig.refs} == {expected}


@levels()
def test_a_page_that_nobody_wrote_is_seen_where_seals_are_read(level):
    rig = Rig(level)
    rig.pages.stamp(LEASE, rig.refs)
    result = rig.pages.verify(LEASE, rig.refs, 8)
    assert result.reason is (IntegrityReason.SEAL_UNWRITTEN if level in SEALING else None)
    rig.write(8)
    result = rig.pages.verify(LEASE, rig.refs, 8)
    assert (result.reason, result.verified_pages) == (None, 2 if level in SEALING else 0)


@levels()
def test_a_partly_filled_last_page_becomes_the_rows_own(level):
    rig = Rig(level)
    rig.write(6)
    fill(rig.pool, rig.tail.page, seed=9)
    table, is_copied = rig.adopt(6)
    assert (table, is_copied) == ([rig.refs[0], rig.tail], True)
    assert (rig.pool.payload(rig.tail.page) == rig.pool.payload(rig.refs[1].page)).all()
    assert rig.kind(rig.tail) == SealKind.OPEN


@levels()
def test_a_prompt_that_fills_its_pages_goes_on_in_an_empty_one(level):
    rig = Rig(level)
    rig.write(8)
    fill(rig.pool, rig.tail.page, seed=9)
    table, is_copied = rig.adopt(8)
    assert (table, is_copied) == ([*rig.refs, rig.tail], False)
    assert not rig.pool.payload(rig.tail.page).any(), "masked slots are read, and must be finite"


@levels()
def test_a_page_that_a_row_grows_by_is_empty_at_every_level(level):
    rig = Rig(level)
    rig.write(6)
    rig.adopt(6)
    (page,) = rig.ledger.lease(1, LEASE.sequence)
    fill(rig.pool, page.page, seed=9)
    rig.pages.grow(LEASE, page, ordinal=2)
    assert not rig.pool.payload(page.page).any()
    assert not rig.pages.check_before([LEASE])


@levels()
def test_a_row_whose_page_was_overwritten_is_found_where_steps_are_guarded(level):
    rig = Rig(level)
    rig.write(6)
    rig.adopt(6)
    assert not rig.pages.check_before([LEASE])
    assert not rig.pages.check_after([LEASE])
    write_sealed(rig.pool, LeaseId(INCARNATION, 9), rig.refs[0], 0)
    for check in (rig.pages.check_before, rig.pages.check_after):
        assert [finding.reason for finding in check([LEASE])] == (
            [IntegrityReason.GUARD_SEAL] if level in SEALING else []
        )


@levels(FenceLevel.SEALED)
def test_a_row_that_left_is_guarded_no_more(level):
    rig = Rig(level)
    rig.write(6)
    rig.adopt(6)
    rig.pages.leave(LEASE)
    rig.pages.leave(LEASE)
    rig.adopt(6)
    assert not rig.pages.check_before([LEASE])


@levels()
def test_a_full_page_of_the_rows_own_is_digested_for_the_sweep_alone(level):
    rig = Rig(level)
    rig.write(6)
    rig.adopt(6)
    rig.pages.seal_own(LEASE, rig.tail, ordinal=1)
    expected = SealKind.SEALED if level is FenceLevel.PARANOID else SealKind.OPEN
    assert rig.kind(rig.tail) == expected


@levels()
def test_freed_pages_are_zeroed_by_paranoid_alone(level):
    rig = Rig(level)
    rig.write(8)
    page = rig.refs[0].page
    before = rig.pool.page(page).copy()
    rig.pages.freed([page])
    assert np.array_equal(rig.pool.page(page), before) is (level is not FenceLevel.PARANOID)


def test_the_key_of_a_lease_comes_from_the_nodes_own_secret():
    rig = Rig(FenceLevel.SEALED)
    assert rig.pages.key(LEASE) == lease_key(SECRET, LEASE)
    assert rig.pages.key(LEASE) != rig.pages.key(lease_of(2))
