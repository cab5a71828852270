"""`tcp`: pages over a TCP connection, received straight into the decode node's pool; nothing to install.

A writer sends each page with a header that names its target; a thread of the receiver, one a connection,
checks the header and receives the bytes into the page. The decode node's own loop sees nothing of it.

**Order before `Closed`.** The stream is in order: payload, then trailer, then the next page. After a
batch's last page the writer asks (SYNC) and the receiver answers (SYNCED) when all of it is in the pool.
The answer is the positive completion; the writer says `Closed` only after it, so every byte lies in the
decode process's memory before the message is sent.

**A cut** is the receiver's own act: it marks the connection, shuts its socket down and joins the thread
that receives. Once that thread has ended nobody is left to store a byte, whatever still lies in a socket's
buffer: PROVEN. While it has not ended: PENDING. The death of the sender is no cut: what it had sent arrives
after it is gone. UNKNOWN is never answered.

**Deadlines.** Nothing is given up by time alone while the peer's machine answers with room for more. Where
it does not for 30 s (a stopped or unreachable peer) the connection counts as lost: the batch in flight is
then BatchLost with `quiet` False, and stays in flight until the receiver cuts, or until the same
incarnation has connected again (the receiver joins the older connection's thread before it admits it).

**What is protected.** Both ends prove the deployment's secret, and no header can be forged, moved or
repeated. Payloads are not encrypted and not authenticated here: their seal shows accidents of every kind,
but its content digest is not keyed, so someone who can alter packets on the way could craft content that
passes. Between machines use a trusted network or a tunnel.
"""

import socket
from pathlib import Path

from kvfence.kv.pool import Pool
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport.admission import Claim
from kvfence.transport.base import PagePause, TransportError, Wake
from kvfence.transport.handshake import HANDSHAKE_SECONDS, check_secret, introduce
from kvfence.transport.tcp_receiver import PlacePause, TcpReceiver
from kvfence.transport.tcp_socket import host_and_port, keep_watch
from kvfence.transport.tcp_writer import TcpLink
from kvfence.transport.writer import QueuedWriter

SCHEME = "tcp:"
LOOPBACK = "127.0.0.1"


class TcpTransport:
    """See the module. Listens on `host`; tells writers to come to `advertise_host` (default: `host`).

    `pause` and `place_pause` are hooks of tests: the writer's in mid-page, the receiver's before it stores
    a page.
    """

    name = TcpReceiver.transport

    def __init__(
        self,
        *,
        host: str = LOOPBACK,
        advertise_host: str | None = None,
        pause: PagePause | None = None,
        place_pause: PlacePause | None = None,
    ) -> None:
        self._host = host
        self._advertise_host = advertise_host or host
        self._pause = pause
        self._place_pause = place_pause

    def listen(
        self,
        *,
        pool: Pool,
        me: Peer,
        secret: bytes,
        run_dir: Path,  # noqa: ARG002 - the interface's; tcp leaves no file behind
        wake: Wake,
    ) -> TcpReceiver:
        """Accept writers on a port that the system chooses. `run_dir` is not used."""
        check_secret(secret)
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            sock = socket.create_server((self._host, 0), family=family)
        except OSError as error:
            raise OperatorError(
                f"no port of {self._host} can be listened on: {error}; is it an address of this machine?"
            ) from error
        address = f"{SCHEME}{self._advertise_host}:{sock.getsockname()[1]}"
        return TcpReceiver(
            sock, address=address, pool=pool, me=me, secret=secret, wake=wake, place_pause=self._place_pause
        )

    def connect(
        self, *, address: str, me: Peer, target: Peer, secret: bytes, source_pool: Pool, wake: Wake
    ) -> QueuedWriter:
        """Register with the receiver at `address`."""
        check_secret(secret)
        if not address.startswith(SCHEME):
            raise OperatorError(
                f"{address!r} is not an address of the transport tcp: give both nodes the same --transport"
            )
        claim = Claim(writer=me, target=target, layout=source_pool.layout.fingerprint())
        place = host_and_port(address.removeprefix(SCHEME))
        try:
            sock = socket.create_connection(place, timeout=HANDSHAKE_SECONDS)
        except OSError as error:
            raise TransportError(f"{target.node} cannot be reached at {address}: {error}") from error
        try:
            keep_watch(sock)
            admitted = introduce(sock, secret=secret, transport=self.name, claim=claim)
        except OSError as error:
            sock.close()
            raise TransportError(f"the handshake with {target.node} at {address} failed: {error}") from error
        except BaseException:
            sock.close()
            raise
        link = TcpLink(sock, admitted, source_pool, self._pause)
        return QueuedWriter(target, link, wake)
