"""Exact sends and receives, and addresses."""

import socket
import threading

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.transport import TransportError
from kvfence.transport.tcp_socket import (
    PEER_SILENT_SECONDS,
    host_and_port,
    keep_watch,
    receive_exactly,
    send_all,
)


def test_pieces_larger_than_the_buffers_arrive_in_order():
    left, right = socket.socketpair()
    pieces = [b"a" * 10, b"", b"b" * 3_000_000, b"c"]
    with left, right:
        sender = threading.Thread(target=send_all, args=(left, pieces))
        sender.start()
        got = bytearray(3_000_011)
        receive_exactly(right, memoryview(got))
        sender.join(20)
        assert bytes(got) == b"".join(pieces)


def test_a_stream_that_ends_early_is_said():
    left, right = socket.socketpair()
    with right:
        left.sendall(b"abc")
        left.close()
        with pytest.raises(TransportError, match="2 bytes early"):
            receive_exactly(right, memoryview(bytearray(5)))


def test_addresses():
    assert host_and_port("127.0.0.1:80") == ("127.0.0.1", 80)
    assert host_and_port("::1:80") == ("::1", 80)


@pytest.mark.parametrize("text", ["", "80", ":80", "host:", "host:x", "host:0", "host:65536", "host:-1"])
def test_what_is_no_address_is_refused(text: str):
    with pytest.raises(OperatorError, match="host:port"):
        host_and_port(text)


def test_a_silent_peer_is_given_up_after_the_stated_time():
    with socket.socket() as sock:
        keep_watch(sock)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == PEER_SILENT_SECONDS * 1000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
