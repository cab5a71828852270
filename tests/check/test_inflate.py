"""What is packed is read, what explodes is not."""

import gzip
import zlib

import pytest

from kvfence.check.inflate import Body, BodyTooLargeError, BodyUnreadableError

TEXT = b"an answer" * 10


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        (None, TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        (" GZIP ", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
    ],
)
def test_a_body_is_read_in_pieces(encoding, packed):
    body = Body(encoding, 1_000)
    assert b"".join(body.plain(packed[at : at + 7]) for at in range(0, len(packed), 7)) == TEXT


def test_a_bomb_is_bounded():
    bomb = gzip.compress(bytes(50 << 20))
    assert len(bomb) < 60_000
    with pytest.raises(BodyTooLargeError, match="larger than 1,000,000 bytes"):
        Body("gzip", 1_000_000).plain(bomb)


def test_the_bound_is_exact():
    assert Body(None, 5).plain(b"12345") == b"12345"
    with pytest.raises(BodyTooLargeError):
        Body(None, 5).plain(b"123456")
    assert Body("gzip", 5).plain(gzip.compress(b"12345")) == b"12345"
    with pytest.raises(BodyTooLargeError):
        Body("gzip", 5).plain(gzip.compress(b"123456"))


def test_what_cannot_be_unpacked_says_so():
    with pytest.raises(BodyUnreadableError, match="compressed as 'br'"):
        Body("br", 5)
    with pytest.raises(BodyUnreadableError, match="compression is broken"):
        Body("gzip", 50).plain(b"no gzip at all")
