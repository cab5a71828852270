import pytest
from tests.kv.pools import PAGE_TOKENS, fill, key_of, lease_of, make_pool, write_sealed

from kvfence.kv.handover import verify_handover
from kvfence.kv.own_pages import copy_tail, open_page, seal_own_page
from kvfence.kv.seal import SealKind
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import PageRef

LEASE = lease_of(5)


def test_an_opened_page_is_zero_and_stamped_open():
    pool = make_pool(3)
    pool.page(1)[:] = 255
    open_page(pool, LEASE, PageRef(1, 8), 3)
    assert not pool.payload(1).any()
    seal = pool.trailers[1]
    assert (seal["kind"], seal["ordinal"], seal["epoch"], seal["sequence"]) == (SealKind.OPEN, 3, 8, 5)


def test_a_tail_is_a_copy_of_the_valid_slots_with_zeros_behind_them():
    pool = make_pool(3)
    write_sealed(pool, LEASE, PageRef(0, 1), 2, valid_tokens=3)
    pool.page(1)[:] = 255
    # A late write into the unused slots of the original must not come along.
    original = pool.payload(0).copy()
    last = pool.layout.regions[0]
    pool.payload(0)[last.offset + 3 * last.slot_bytes] = 9
    copy_tail(pool, LEASE, source=PageRef(0, 1), target=PageRef(1, 6), ordinal=2, valid_tokens=3)
    assert (pool.payload(1) == original).all()
    seal = pool.trailers[1]
    assert (seal["kind"], seal["ordinal"], seal["epoch"]) == (SealKind.OPEN, 2, 6)
    assert not any(seal["digest"].tobytes())


@pytest.mark.parametrize("valid_tokens", [0, PAGE_TOKENS])
def test_a_full_or_empty_page_is_no_tail(valid_tokens):
    with pytest.raises(InvariantError, match="no tail"):
        copy_tail(
            make_pool(2),
            LEASE,
            source=PageRef(0, 1),
            target=PageRef(1, 1),
            ordinal=0,
            valid_tokens=valid_tokens,
        )


def test_a_full_page_sealed_in_place_verifies():
    pool = make_pool(2)
    ref = PageRef(1, 4)
    open_page(pool, LEASE, ref, 0)
    fill(pool, 1, seed=2)
    seal_own_page(pool, LEASE, key_of(LEASE), ref, 0)
    result = verify_handover(pool, LEASE, key_of(LEASE), [ref], PAGE_TOKENS, PAGE_TOKENS)
    assert result.reason is None
