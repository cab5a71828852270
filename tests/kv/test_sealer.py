import numpy as np
import pytest
from tests.kv.pools import PAGE_TOKENS, fill, key_of, lease_of, make_pool

import kvfence.kv.sealer
from kvfence.kv.seal import SEAL_DTYPE, digest_page, make_trailer
from kvfence.kv.sealer import PageSealer
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import PageRef


def test_a_sealed_page_is_staged_for_many_leases_without_being_hashed_again(monkeypatch):
    pool = make_pool(4)
    fill(pool, 2, seed=1)
    sealer = PageSealer(pool)
    source = PageRef(2, 5)
    sealer.seal_page(source, PAGE_TOKENS)
    digest = digest_page(pool.payload(2))
    monkeypatch.setattr(kvfence.kv.sealer, "digest_page", None)
    for sequence in (1, 2, 3):
        lease, target = lease_of(sequence), PageRef(9, sequence)
        staged = sealer.stage_trailers(
            lease, key_of(lease), sources=[source], targets=[target], first_ordinal=6
        )
        assert staged == make_trailer(
            lease, key_of(lease), epoch=sequence, ordinal=6, valid_tokens=PAGE_TOKENS, digest=digest
        )


def test_unused_slots_are_zeroed_before_the_digest():
    pool, clean = make_pool(2), make_pool(2)
    for each in (pool, clean):
        fill(each, 0, seed=3)
    clean.zero_slots(0, 1)
    sealer = PageSealer(pool)
    sealer.seal_page(PageRef(0, 1), 1)
    assert (pool.payload(0) == clean.payload(0)).all()
    lease = lease_of(1)
    staged = sealer.stage_trailers(
        lease, key_of(lease), sources=[PageRef(0, 1)], targets=[PageRef(0, 1)], first_ordinal=0
    )
    seal = np.frombuffer(staged, SEAL_DTYPE)[0]
    assert seal["valid_tokens"] == 1
    assert seal["digest"].tobytes() == digest_page(clean.payload(0))


def test_a_digest_counts_under_its_own_epoch_only():
    pool = make_pool(2)
    sealer = PageSealer(pool)
    sealer.seal_page(PageRef(1, 4), PAGE_TOKENS)
    assert sealer.is_sealed(PageRef(1, 4))
    assert not sealer.is_sealed(PageRef(1, 5))
    lease = lease_of(1)
    for stale in (PageRef(1, 5), PageRef(0, 1)):
        with pytest.raises(InvariantError, match="unsealed"):
            sealer.stage_trailers(
                lease, key_of(lease), sources=[stale], targets=[PageRef(0, 1)], first_ordinal=0
            )
    sealer.seal_page(PageRef(1, 5), PAGE_TOKENS)
    assert not sealer.is_sealed(PageRef(1, 4))


def test_a_page_is_digested_once_and_has_tokens():
    sealer = PageSealer(make_pool(2))
    sealer.seal_page(PageRef(0, 1), 2)
    with pytest.raises(InvariantError, match="once"):
        sealer.seal_page(PageRef(0, 1), 3)
    for valid_tokens in (0, PAGE_TOKENS + 1):
        with pytest.raises(InvariantError, match="1 to 4"):
            sealer.seal_page(PageRef(1, 1), valid_tokens)


def test_each_source_has_a_target():
    sealer = PageSealer(make_pool(2))
    with pytest.raises(InvariantError, match="a target for each"):
        sealer.stage_trailers(
            lease_of(1), key_of(lease_of(1)), sources=[], targets=[PageRef(0, 1)], first_ordinal=0
        )
