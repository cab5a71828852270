"""The hash by which router, prefill and decode agree on what a prompt is.

It covers the token ids and nothing else; it is a check of identity, not a cache key.
"""

from array import array
from collections.abc import Sequence
from hashlib import sha256
from sys import byteorder

_TOKEN_BYTES = 4


def hash_tokens(tokens: Sequence[int]) -> bytes:
    """SHA-256 over the token ids as little-endian u32. Raises OverflowError for an id outside of u32."""
    ids = array("I", tokens)
    if ids.itemsize != _TOKEN_BYTES:  # a C compiler may choose another width for unsigned int
        return sha256(b"".join(token.to_bytes(_TOKEN_BYTES, "little") for token in tokens)).digest()
    if byteorder == "big":
        ids.byteswap()
    return sha256(ids.tobytes()).digest()
