"""Bodies as they travel, made plain, and never larger than they may be.

Rules it keeps:
- The client asks for no compression; a server that compresses all the same is read where it is gzip or
  deflate.
- The bound holds for what comes out, so that a few bytes that unpack into gigabytes cost nothing.
"""

import zlib

from kvfence.protocol.errors import invariant


class BodyTooLargeError(Exception):
    """An answer is larger than one may be."""


class BodyUnreadableError(Exception):
    """An answer is packed in a way that cannot be read, or is packed badly."""


class Body:
    """Unpacks the chunks of one body, up to `bytes_max` bytes."""

    def __init__(self, encoding: str | None, bytes_max: int) -> None:
        """`encoding` is the Content-Encoding. Raises BodyUnreadableError for one that is not known."""
        invariant(bytes_max > 0, "a body has a bound")
        self._left = bytes_max
        self._bytes_max = bytes_max
        self._inflater = _inflater((encoding or "identity").strip().lower())

    def plain(self, chunk: bytes) -> bytes:
        """Return what a chunk holds. Raises BodyTooLargeError or BodyUnreadableError."""
        found = chunk
        if self._inflater is not None:
            try:
                # One byte more than allowed is enough to know that there is more.
                found = self._inflater.decompress(chunk, self._left + 1)
            except zlib.error as error:
                raise BodyUnreadableError(f"the answer's compression is broken ({error})") from error
        self._left -= len(found)
        if self._left < 0:
            raise BodyTooLargeError(
                f"the answer is larger than {self._bytes_max:,} bytes; the rest is not read"
            )
        return found


def _inflater(encoding: str) -> "zlib._Decompress | None":
    if encoding in ("identity", ""):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(
            wbits=zlib.MAX_WBITS | 32
        )  # which of gzip and zlib it is stands in its head
    raise BodyUnreadableError(f"the answer is compressed as {encoding[:40]!r}, which was not asked for")
