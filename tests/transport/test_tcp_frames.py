"""Headers of tcp: what was sealed opens once, in order, in its own direction and session."""

import pytest

from kvfence.protocol.words import LeaseId
from kvfence.transport import TransportError
from kvfence.transport.tcp_frames import (
    FROM_RECEIVER,
    FROM_WRITER,
    HEADER_BYTES,
    Header,
    HeaderOpener,
    HeaderSealer,
    Kind,
)

KEY = b"k" * 32
HEADER = Header(Kind.PAGE, LeaseId(2**64 - 1, 3), 2**40, 17, page=2**63)


def test_a_header_survives_the_way():
    sealer, opener = HeaderSealer(KEY, FROM_WRITER), HeaderOpener(KEY, FROM_WRITER)
    for kind in Kind:
        header = Header(kind, LeaseId(1, 2), 3, 4, page=5)
        data = sealer.seal(header)
        assert len(data) == HEADER_BYTES == 64
        assert opener.open(data) == header
    assert opener.open(sealer.seal(HEADER)) == HEADER


def test_every_changed_byte_is_seen():
    data = HeaderSealer(KEY, FROM_WRITER).seal(HEADER)
    for position in range(HEADER_BYTES):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(TransportError, match="tag"):
            HeaderOpener(KEY, FROM_WRITER).open(changed)


def test_repeated_and_skipped_headers_are_seen():
    sealer, opener = HeaderSealer(KEY, FROM_WRITER), HeaderOpener(KEY, FROM_WRITER)
    first, second, third = (sealer.seal(HEADER) for _ in range(3))
    opener.open(first)
    with pytest.raises(TransportError, match="was due"):
        opener.open(first)
    with pytest.raises(TransportError, match="was due"):
        opener.open(third)
    opener.open(second)


def test_the_other_direction_and_another_session_do_not_open():
    data = HeaderSealer(KEY, FROM_WRITER).seal(HEADER)
    with pytest.raises(TransportError):
        HeaderOpener(KEY, FROM_RECEIVER).open(data)
    with pytest.raises(TransportError):
        HeaderOpener(b"l" * 32, FROM_WRITER).open(data)
