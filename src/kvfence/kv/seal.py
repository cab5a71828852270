"""The seal: the last 64 bytes of a page, which say whose it is, which one it is, and what is in it.

Rules: a header names (lease, epoch, ordinal, valid tokens); the digest covers the whole payload with its
unused slots zeroed and is taken once a page; the tag binds header and digest under the lease's key, so
that a page computed once is sent to many leases without being hashed again.

It stands against accidents, bugs, stale and misdirected pages. A writer that holds the lease's key can
seal what it likes; nothing here stands against that.
"""

from enum import IntEnum, unique

import numpy as np

SEAL_VERSION = 1
TAG_BYTES = 12
DIGEST_BYTES = 16

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
        ("valid_tokens", "<u4"),
        ("tag", "V12"),
        ("digest", "V16"),
    ]
)


@unique
class SealKind(IntEnum):
    """What the trailer says about its page. A page fresh from the kernel is BLANK."""

    BLANK = 0
    UNWRITTEN = 1  # reserved by decode, nothing has arrived yet
    OPEN = 2  # this node itself appends to it; no digest yet
    SEALED = 3  # complete, with digest and tag
