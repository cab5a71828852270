"""The seal: the last 64 bytes of a page, which say whose it is, which one it is, and what is in it.

Rules: a header names (lease, epoch, ordinal, valid tokens); the digest covers the whole payload with its
unused slots zeroed and is taken once a page; the tag binds header and digest under the lease's key, so
that a page computed once is sent to many leases without being hashed again.

It stands against accidents, bugs, stale and misdirected pages. A writer that holds the lease's key can
seal what it likes; nothing here stands against that.
"""

import hashlib
import sys
from collections.abc import Sequence
from enum import IntEnum, unique
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import xxhash

from kvfence.kv.layout import SEAL_BYTES
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId, PageRef

if TYPE_CHECKING:  # the pool needs SEAL_DTYPE; this file only needs the pool's name
    from kvfence.kv.pool import Pool

Trailers = npt.NDArray[Any]  # of SEAL_DTYPE
Words = npt.NDArray[np.uint64]

SEAL_VERSION = 1
DIGEST_BYTES = 16
TAG_BYTES = 12
KEY_BYTES = 32
SECRET_BYTES_MIN = 16
SECRET_BYTES_MAX = 64  # what BLAKE2b takes as a key

SEAL_DTYPE = np.dtype(
    [
        # One word: what guard and verification compare first.
        ("version", "<u2"),
        ("kind", "<u2"),
        ("ordinal", "<u4"),
        # Three words: the lease and the page's epoch.
        ("incarnation", "<u8"),
        ("sequence", "<u8"),
        ("epoch", "<u8"),
        # The tag comes last, so that what it binds is one run of bytes.
        ("valid_tokens", "<u4"),
        ("digest", f"V{DIGEST_BYTES}"),
        ("tag", f"V{TAG_BYTES}"),
    ]
)
TAGGED_BYTES = SEAL_BYTES - TAG_BYTES

invariant(SEAL_DTYPE.itemsize == SEAL_BYTES, "a seal fills the trailer that the layout leaves for it")
invariant(sys.byteorder == "little", "seals are read as little-endian words, and so are K and V")


@unique
class SealKind(IntEnum):
    """What the trailer says about its page. A page fresh from the kernel, or scrubbed, is BLANK."""

    BLANK = 0
    UNWRITTEN = 1  # reserved by decode, nothing has arrived yet
    OPEN = 2  # this node itself appends to it; no digest yet
    SEALED = 3  # complete, with digest and tag


def lease_key(node_secret: bytes, lease: LeaseId) -> bytes:
    """Derive the 32-byte key of a lease from the decode node's secret (16 to 64 random bytes)."""
    invariant(SECRET_BYTES_MIN <= len(node_secret) <= SECRET_BYTES_MAX, "a node secret is 16 to 64 bytes")
    name = lease.incarnation.to_bytes(8, "little") + lease.sequence.to_bytes(8, "little")
    return hashlib.blake2b(name, key=node_secret, person=b"kvfence lease", digest_size=KEY_BYTES).digest()


def digest_page(payload: npt.NDArray[np.uint8]) -> bytes:
    """xxh3-128 of a payload, 16 bytes. Releases the interpreter while it reads."""
    digest: bytes = xxhash.xxh3_128_digest(payload.data)
    return digest


def make_trailers(
    lease: LeaseId,
    key: bytes,
    *,
    epochs: Sequence[int] | Words,
    ordinals: Sequence[int] | Words,
    valid_tokens: Sequence[int] | Words,
    digests: bytes,
) -> Trailers:
    """Trailers of SEALED pages, one for each epoch; `digests` are their digests end to end."""
    invariant(len(digests) == DIGEST_BYTES * len(epochs), "each page brings one digest")
    trailers = np.zeros(len(epochs), SEAL_DTYPE)
    trailers["version"] = SEAL_VERSION
    trailers["kind"] = SealKind.SEALED
    trailers["ordinal"] = ordinals
    trailers["incarnation"] = lease.incarnation
    trailers["sequence"] = lease.sequence
    trailers["epoch"] = epochs
    trailers["valid_tokens"] = valid_tokens
    trailers["digest"] = np.frombuffer(digests, f"V{DIGEST_BYTES}")
    trailers["tag"] = tags_of(trailers, key)
    return trailers


def tags_of(trailers: Trailers, key: bytes) -> npt.NDArray[np.void]:
    """Return the tag that each trailer must carry under `key`: BLAKE2b over all of it but the tag."""
    keyed = hashlib.blake2b(key=key, person=b"kvfence tag", digest_size=TAG_BYTES)
    raw = trailers.tobytes()
    tags = bytearray()
    for start in range(0, len(raw), SEAL_BYTES):
        hasher = keyed.copy()  # two thirds of the price of setting the key up again
        hasher.update(raw[start : start + TAGGED_BYTES])
        tags += hasher.digest()
    return np.frombuffer(bytes(tags), f"V{TAG_BYTES}")


def make_trailer(
    lease: LeaseId, key: bytes, *, epoch: int, ordinal: int, valid_tokens: int, digest: bytes
) -> bytes:
    """Build the 64 bytes of one SEALED page."""
    return make_trailers(
        lease, key, epochs=[epoch], ordinals=[ordinal], valid_tokens=[valid_tokens], digests=digest
    ).tobytes()


def make_tag(
    key: bytes, lease: LeaseId, *, epoch: int, ordinal: int, valid_tokens: int, digest: bytes
) -> bytes:
    """Build the 12-byte tag of one SEALED page."""
    trailer = make_trailer(lease, key, epoch=epoch, ordinal=ordinal, valid_tokens=valid_tokens, digest=digest)
    return trailer[TAGGED_BYTES:]


def first_words(kind: SealKind, ordinals: Words) -> Words:
    """Return the first word of headers of that kind: version, kind, ordinal."""
    low = np.uint64(SEAL_VERSION | int(kind) << 16)
    return (ordinals << np.uint64(32)) | low


def header_words(kind: SealKind, lease: LeaseId, refs: Sequence[PageRef], first_ordinal: int = 0) -> Words:
    """Headers [4, pages] that `refs` carry as pages `first_ordinal`, … of the lease."""
    count = len(refs)
    words = np.empty((4, count), np.uint64)
    words[0] = first_words(kind, np.arange(first_ordinal, first_ordinal + count, dtype=np.uint64))
    words[1] = lease.incarnation
    words[2] = lease.sequence
    words[3] = np.fromiter((ref.epoch for ref in refs), np.uint64, count)
    return words


def page_indices(refs: Sequence[PageRef]) -> npt.NDArray[np.intp]:
    """Page numbers of `refs`, as an index array."""
    return np.fromiter((ref.page for ref in refs), np.intp, len(refs))


def stamp(pool: "Pool", kind: SealKind, lease: LeaseId, refs: Sequence[PageRef], first_ordinal: int) -> None:
    """Overwrite the trailers of `refs` with headers of `kind`, without digest and tag."""
    invariant(kind is not SealKind.SEALED, "a stamp has no digest, so it cannot say SEALED")
    words = np.zeros((len(refs), 8), np.uint64)
    words[:, :4] = header_words(kind, lease, refs, first_ordinal).T
    pool.seals[page_indices(refs)] = words


def stamp_unwritten(pool: "Pool", lease: LeaseId, refs: Sequence[PageRef], first_ordinal: int = 0) -> None:
    """Mark pages as reserved for the lease and not yet written, before their writer hears of them."""
    stamp(pool, SealKind.UNWRITTEN, lease, refs, first_ordinal)
