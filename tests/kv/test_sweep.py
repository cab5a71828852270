import pytest
from tests.kv.pools import INCARNATION, lease_of, make_pool, write_sealed

from kvfence.kv.own_pages import open_page
from kvfence.kv.sweep import WINDOW_PAGES, PageSweep, scrub_pages
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.words import IntegrityReason

PAGES = 12


def node(sealed: int = 8, pages: int = PAGES):
    """A pool with the first `sealed` pages SEALED under lease 1, one OPEN, the rest FREE."""
    pool, ledger = make_pool(pages), PageLedger(pages)
    refs = ledger.lease(sealed + 1, 1)
    for ordinal, ref in enumerate(refs[:-1]):
        write_sealed(pool, lease_of(1), ref, ordinal, seed=ordinal)
    open_page(pool, lease_of(1), refs[-1], sealed)
    ledger.open(refs[-1:])
    ledger.seal(refs[:-1])
    return pool, ledger, refs


def test_a_healthy_pool_stays_silent_for_ever():
    pool, ledger, _ = node()
    sweep = PageSweep(pool, ledger, INCARNATION, sample_pages=3)
    assert not any(sweep.check_some() for _ in range(20))


@pytest.mark.parametrize("ordinal", [0, 3, 7])
def test_a_changed_byte_is_found_within_one_round(ordinal):
    pool, ledger, refs = node()
    sweep = PageSweep(pool, ledger, INCARNATION, sample_pages=3)
    pool.payload(refs[ordinal].page)[1] ^= 1
    found = [finding for _ in range(3) for finding in sweep.check_some()]
    assert [(f.lease, f.reason, f.pages, f.poisoned) for f in found] == [
        (lease_of(1), IntegrityReason.SWEEP_DIGEST, (refs[ordinal].page,), (refs[ordinal].page,))
    ]


def test_a_whole_foreign_page_is_found_although_its_own_seal_is_intact():
    pool, ledger, refs = node()
    write_sealed(pool, lease_of(2), refs[4], 4)
    found = PageSweep(pool, ledger, INCARNATION, sample_pages=PAGES).check_some()
    assert [finding.poisoned for finding in found] == [(refs[4].page,)]


def test_a_sealed_page_whose_trailer_says_open_is_found():
    pool, ledger, refs = node()
    open_page(pool, lease_of(1), refs[2], 2)
    found = PageSweep(pool, ledger, INCARNATION, sample_pages=PAGES).check_some()
    assert [finding.poisoned for finding in found] == [(refs[2].page,)]


def test_open_closing_and_free_pages_are_not_looked_at():
    pool, ledger, refs = node()
    pool.payload(refs[-1].page)[:] = 3
    pool.payload(PAGES - 1)[:] = 3
    ledger.close(refs[:1])
    pool.payload(refs[0].page)[:] = 3
    assert not PageSweep(pool, ledger, INCARNATION, sample_pages=PAGES).check_some()


def test_pages_of_several_rows_are_told_apart():
    pool, ledger, refs = node(sealed=4)
    other = ledger.lease(2, 2)
    for ordinal, ref in enumerate(other):
        write_sealed(pool, lease_of(2), ref, ordinal)
    ledger.seal(other)
    for ref in (refs[0], refs[1], other[1]):
        pool.payload(ref.page)[0] ^= 1
    found = PageSweep(pool, ledger, INCARNATION, sample_pages=PAGES).check_some()
    assert {finding.lease: set(finding.pages) for finding in found} == {
        lease_of(1): {refs[0].page, refs[1].page},
        lease_of(2): {other[1].page},
    }


def test_a_step_looks_at_no_more_than_its_sample():
    pool, ledger, refs = node()
    for ref in refs[:-1]:
        pool.payload(ref.page)[0] ^= 1
    sweep = PageSweep(pool, ledger, INCARNATION, sample_pages=3)
    assert [len(sweep.check_some()[0].pages) for _ in range(3)] == [3, 3, 2]


def test_a_pool_larger_than_the_window_is_swept_whole():
    pool, ledger, refs = node(sealed=WINDOW_PAGES + 5, pages=WINDOW_PAGES + 10)
    sweep = PageSweep(pool, ledger, INCARNATION, sample_pages=WINDOW_PAGES)
    pool.payload(refs[-2].page)[0] ^= 1
    assert not sweep.check_some()
    assert sweep.check_some()[0].pages == (refs[-2].page,)


def test_a_sweep_samples_something():
    pool, ledger, _ = node()
    with pytest.raises(InvariantError, match="at least"):
        PageSweep(pool, ledger, INCARNATION, sample_pages=0)


def test_a_scrubbed_page_is_zero_from_end_to_end_and_its_neighbours_are_not():
    pool = make_pool(4)
    pool.buffer[:] = 1
    scrub_pages(pool, [1, 2])
    assert not pool.rows[1:3].any()
    assert pool.rows[0].all()
    assert pool.rows[3].all()
