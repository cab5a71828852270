"""What travels on a tcp page connection after the handshake: fixed headers, and pages between them.

    writer:    PAGE header, payload, trailer;  PAGE …;  SYNC header
    receiver:  SYNCED header

A header is 64 bytes: kind, running number, lease, batch, index or count, target page, and a keyed BLAKE2b
tag over them, under a key of this session and direction. So a header can be neither forged nor dropped,
repeated, or moved to another place or connection. Payload and trailer carry no tag of their own here: the
seal inside them does (digest and tag, verified before anything reads the page).

It reads no socket.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Final

from kvfence.protocol.words import LeaseId
from kvfence.transport.base import TransportError

_FIELDS: Final = struct.Struct("!IIQQQQQ")
_TAG_BYTES: Final = 16
HEADER_BYTES: Final = _FIELDS.size + _TAG_BYTES
FROM_WRITER: Final = b"kvf-writer"
FROM_RECEIVER: Final = b"kvf-receiver"


@unique
class Kind(IntEnum):
    """What a header announces."""

    PAGE = 1  # one page follows, for target page `page`; it is number `index` of its batch
    SYNC = 2  # say when the `index` pages of this batch are in place
    SYNCED = 3  # they are


@dataclass(frozen=True, slots=True)
class Header:
    """One header, without its running number and tag."""

    kind: Kind
    lease: LeaseId
    batch: int
    index: int
    page: int = 0


class HeaderSealer:
    """Numbers and tags the headers of one direction."""

    def __init__(self, session_key: bytes, direction: bytes) -> None:
        self._key = session_key
        self._direction = direction
        self._number = 0

    def seal(self, header: Header) -> bytes:
        """The 64 bytes to send."""
        lease = header.lease
        fields = _FIELDS.pack(
            header.kind,
            header.index,
            self._number,
            lease.incarnation,
            lease.sequence,
            header.batch,
            header.page,
        )
        self._number += 1
        return fields + _tag(self._key, self._direction, fields)


class HeaderOpener:
    """Verifies the headers of one direction, in order."""

    def __init__(self, session_key: bytes, direction: bytes) -> None:
        self._key = session_key
        self._direction = direction
        self._number = 0

    def open(self, data: bytes | bytearray) -> Header:
        """Parse a header, or raise TransportError: after that the connection is of no more use."""
        fields = bytes(data[: _FIELDS.size])
        if not hmac.compare_digest(bytes(data[_FIELDS.size :]), _tag(self._key, self._direction, fields)):
            raise TransportError("a header's tag does not verify: the stream was changed or is out of step")
        kind, index, number, incarnation, sequence, batch, page = _FIELDS.unpack(fields)
        if number != self._number or kind not in set(Kind):
            raise TransportError(f"header {number} of kind {kind} came where number {self._number} was due")
        self._number += 1
        return Header(Kind(kind), LeaseId(incarnation, sequence), batch, index, page)


def _tag(key: bytes, direction: bytes, fields: bytes) -> bytes:
    return hashlib.blake2b(fields, digest_size=_TAG_BYTES, key=key, person=direction).digest()
