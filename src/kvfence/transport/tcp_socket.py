"""Settings of a page connection's TCP socket, and reads and writes of exact length.

Rules: a dead or stopped peer is noticed within `PEER_SILENT_SECONDS`; a short read is an error, never a
short page.
"""

import socket
from collections.abc import Sequence

from kvfence.protocol.errors import OperatorError
from kvfence.transport.base import TransportError

PEER_SILENT_SECONDS = 30
PROBE_SECONDS = 5
PROBES = 3
PORT_MAX = 65_535


def keep_watch(sock: socket.socket) -> None:
    """Lose the connection when the peer's machine is silent, or takes no byte, for too long."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, PROBE_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, PROBE_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, PEER_SILENT_SECONDS * 1000)


def host_and_port(text: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host has colons of its own. Raises OperatorError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
        raise OperatorError(f"{text!r} is not host:port: take the address that the receiver stated")
    return host, int(port)


def send_all(sock: socket.socket, pieces: Sequence[memoryview | bytes]) -> None:
    """Send every byte of the pieces, in order. Raises OSError when the connection is gone."""
    left = [memoryview(piece) for piece in pieces]
    while left:
        sent = sock.sendmsg(left)
        while left and sent >= len(left[0]):
            sent -= len(left.pop(0))
        if left:
            left[0] = left[0][sent:]


def receive_exactly(sock: socket.socket, into: memoryview) -> None:
    """Fill `into`. Raises TransportError when the stream ends before."""
    filled = 0
    while filled < len(into):
        count = sock.recv_into(into[filled:])
        if count == 0:
            raise TransportError(f"the connection ended {len(into) - filled} bytes early")
        filled += count
