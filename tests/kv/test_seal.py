import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kv.pools import SECRET, key_of, lease_of, make_pool

from kvfence.kv.seal import (
    SEAL_DTYPE,
    SealKind,
    digest_page,
    header_words,
    lease_key,
    make_tag,
    make_trailer,
    make_trailers,
    stamp,
    stamp_unwritten,
)
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import LeaseId, PageRef

LEASE = lease_of(3)
FACTS = {"epoch": 5, "ordinal": 2, "valid_tokens": 4, "digest": bytes(range(16))}
u64 = st.integers(0, 2**64 - 1)


def test_a_trailer_is_one_cache_line_and_reads_back():
    trailer = make_trailer(LEASE, key_of(LEASE), **FACTS)
    assert len(trailer) == 64
    seal = np.frombuffer(trailer, SEAL_DTYPE)[0]
    assert (seal["kind"], seal["ordinal"], seal["valid_tokens"]) == (SealKind.SEALED, 2, 4)
    assert (seal["incarnation"], seal["sequence"], seal["epoch"]) == (7, 3, 5)
    assert seal["digest"].tobytes() == FACTS["digest"]
    assert seal["tag"].tobytes() == make_tag(key_of(LEASE), LEASE, **FACTS)


@given(u64, u64, u64, st.integers(0, 2**32 - 1), st.sampled_from(SealKind))
def test_the_header_words_are_the_first_fields_of_a_trailer(incarnation, sequence, epoch, ordinal, kind):
    lease = LeaseId(incarnation, sequence)
    words = header_words(kind, lease, [PageRef(0, epoch)], ordinal)
    seal = np.frombuffer(words.T.tobytes() + bytes(32), SEAL_DTYPE)[0]
    assert (seal["kind"], seal["ordinal"], seal["epoch"]) == (kind, ordinal, epoch)
    assert (seal["incarnation"], seal["sequence"]) == (incarnation, sequence)


@pytest.mark.parametrize(
    "change",
    [{"epoch": 6}, {"ordinal": 3}, {"valid_tokens": 3}, {"digest": bytes(16)}],
)
def test_the_tag_binds_every_fact(change):
    tag = make_tag(key_of(LEASE), LEASE, **FACTS)
    assert make_tag(key_of(LEASE), LEASE, **{**FACTS, **change}) != tag
    assert make_tag(key_of(LEASE), LEASE, **FACTS) == tag


@pytest.mark.parametrize("other", [lease_of(4), LeaseId(8, 3)])
def test_the_tag_binds_the_lease_and_its_key(other):
    tag = make_tag(key_of(LEASE), LEASE, **FACTS)
    assert make_tag(key_of(LEASE), other, **FACTS) != tag
    assert make_tag(key_of(other), LEASE, **FACTS) != tag


def test_a_lease_key_is_of_its_secret_and_lease():
    keys = {
        lease_key(SECRET, LEASE),
        lease_key(SECRET, lease_of(4)),
        lease_key(SECRET, dataclasses.replace(LEASE, incarnation=8)),
        lease_key(SECRET[::-1], LEASE),
    }
    assert len(keys) == 4
    assert lease_key(SECRET, LEASE) in keys
    with pytest.raises(InvariantError, match="16 to 64"):
        lease_key(b"short", LEASE)
    with pytest.raises(InvariantError, match="16 to 64"):
        lease_key(bytes(65), LEASE)


def test_a_batch_of_trailers_is_the_trailers_one_by_one():
    digests = bytes(range(48))
    batch = make_trailers(
        LEASE, key_of(LEASE), epochs=[1, 2, 3], ordinals=[4, 5, 6], valid_tokens=[4, 4, 1], digests=digests
    )
    singles = [
        make_trailer(
            LEASE,
            key_of(LEASE),
            epoch=1 + index,
            ordinal=4 + index,
            valid_tokens=(4, 4, 1)[index],
            digest=digests[16 * index : 16 * index + 16],
        )
        for index in range(3)
    ]
    assert batch.tobytes() == b"".join(singles)
    with pytest.raises(InvariantError, match="one digest"):
        make_trailers(
            LEASE, key_of(LEASE), epochs=[1, 2], ordinals=[1, 2], valid_tokens=[4, 4], digests=bytes(16)
        )


def test_the_digest_changes_with_any_byte():
    payload = np.zeros(640, np.uint8)
    digest = digest_page(payload)
    assert len(digest) == 16
    for index in (0, 333, 639):
        payload[index] = 1
        assert digest_page(payload) != digest
        payload[index] = 0
    assert digest_page(payload) == digest


def test_a_stamp_replaces_the_whole_trailer_and_nothing_else():
    pool = make_pool(6)
    pool.buffer[:] = 255
    refs = [PageRef(4, 9), PageRef(1, 2)]
    stamp_unwritten(pool, LEASE, refs)
    for ordinal, ref in enumerate(refs):
        seal = pool.trailers[ref.page]
        assert (seal["kind"], seal["ordinal"]) == (SealKind.UNWRITTEN, ordinal)
        assert (seal["sequence"], seal["epoch"]) == (3, ref.epoch)
        assert not any(seal["digest"].tobytes() + seal["tag"].tobytes())
        assert (pool.payload(ref.page) == 255).all()
    assert all((pool.page(page) == 255).all() for page in (0, 2, 3, 5))


def test_a_stamp_counts_on_from_its_first_ordinal_and_never_says_sealed():
    pool = make_pool(3)
    stamp(pool, SealKind.OPEN, LEASE, [PageRef(0, 1), PageRef(2, 1)], 7)
    assert pool.trailers["ordinal"].tolist() == [7, 0, 8, 0]
    with pytest.raises(InvariantError, match="SEALED"):
        stamp(pool, SealKind.SEALED, LEASE, [PageRef(0, 1)], 0)
