"""The decode end of tcp: a thread for each connection, which receives pages straight into the pool.

Rules: a page is stored only after its header has verified and its number lies inside the pool; the mark of
a cut is looked at before every header and every piece of a page; whatever is not as it should be ends the
connection. The answer to a SYNC is sent after the last byte of its batch is in the pool.
"""

import socket
from collections.abc import Callable

from kvfence.kv.pool import Pool
from kvfence.protocol.words import LeaseId, Peer
from kvfence.transport.admission import Claim
from kvfence.transport.base import CutResult, TransportError, Wake
from kvfence.transport.handshake import ReceiverHandshake
from kvfence.transport.listener import Connection
from kvfence.transport.receiver import AdmittingReceiver
from kvfence.transport.tcp_frames import (
    FROM_RECEIVER,
    FROM_WRITER,
    HEADER_BYTES,
    Header,
    HeaderOpener,
    HeaderSealer,
    Kind,
)
from kvfence.transport.tcp_socket import keep_watch

JOIN_SECONDS = 0.2  # how long one `cut` waits for the receiving thread

PlacePause = Callable[[int], None]
"""A test's hook: called by the receiving thread when the header of a page has come, before its bytes."""


class TcpSession:
    """One writer incarnation whose bytes one thread stores."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def quiesce(self) -> CutResult:
        """Mark, shut down, join."""
        self._connection.stop()
        return CutResult.PROVEN if self._connection.join(JOIN_SECONDS) else CutResult.PENDING

    def end(self) -> None:
        """Nothing to give up: a thread that has been joined stays a proof."""


class TcpReceiver(AdmittingReceiver[TcpSession]):
    """Receives the pages of each writer that is admitted. A cut is PROVEN once its thread has ended.

    After `close` every thread was joined: every cut is PROVEN from there on.
    """

    transport = "tcp"

    def __init__(
        self,
        sock: socket.socket,
        *,
        address: str,
        pool: Pool,
        me: Peer,
        secret: bytes,
        wake: Wake,
        place_pause: PlacePause | None = None,
    ) -> None:
        self._place_pause = place_pause
        super().__init__(sock, address=address, pool=pool, me=me, secret=secret, wake=wake)

    def _open_session(self, connection: Connection) -> TcpSession:
        return TcpSession(connection)

    def _serve(self, connection: Connection) -> None:
        keep_watch(connection.sock)
        super()._serve(connection)

    def _receive(
        self,
        connection: Connection,
        handshake: ReceiverHandshake,
        claim: Claim,  # noqa: ARG002 - the interface's; who sent a page is in its seal
        session: TcpSession,  # noqa: ARG002 - the interface's; it stops the connection and nothing else
    ) -> None:
        session_key = handshake.admit(pages=self._pool.pages, layout=self._pool.layout.fingerprint())
        self._wake()
        _Receiving(connection, self._pool, session_key, self._place_pause).run()


class _Receiving:
    """The receive loop of one connection."""

    def __init__(
        self, connection: Connection, pool: Pool, session_key: bytes, place_pause: PlacePause | None
    ) -> None:
        self._connection = connection
        self._pool = pool
        self._place_pause = place_pause
        self._opener = HeaderOpener(session_key, FROM_WRITER)
        self._sealer = HeaderSealer(session_key, FROM_RECEIVER)
        self._placed: tuple[LeaseId, int, int] | None = None  # lease, batch and count of pages since a SYNC

    def run(self) -> None:
        """Until the writer closes, breaks the protocol, or is cut."""
        header = memoryview(bytearray(HEADER_BYTES))
        while self._fill(header, may_end=True):
            self._obey(self._opener.open(bytes(header)))

    def _obey(self, header: Header) -> None:
        if header.kind is Kind.PAGE:
            self._place(header)
        elif header.kind is Kind.SYNC:
            self._answer(header)
        else:
            raise TransportError(f"a writer sent {header.kind.name}, which only a receiver says")

    def _place(self, header: Header) -> None:
        expected = self._placed or (header.lease, header.batch, 0)
        if expected != (header.lease, header.batch, header.index):
            raise TransportError(f"page {header.index} of batch {header.batch} came out of its order")
        if not 0 <= header.page < self._pool.pages:
            raise TransportError(
                f"a writer names page {header.page} of a pool of {self._pool.pages}: nothing was stored"
            )
        if self._place_pause is not None:
            self._place_pause(header.page)
        # The stream is in order, so the payload is stored before the trailer at the page's end.
        self._fill(self._pool.page(header.page).data, may_end=False)
        self._placed = (header.lease, header.batch, header.index + 1)

    def _answer(self, header: Header) -> None:
        if self._placed != (header.lease, header.batch, header.index):
            raise TransportError(f"batch {header.batch} claims {header.index} pages, which is not what came")
        self._placed = None
        answer = Header(Kind.SYNCED, header.lease, header.batch, header.index)
        self._connection.sock.sendall(self._sealer.seal(answer))

    def _fill(self, into: memoryview, *, may_end: bool) -> bool:
        """Receive `into` whole. False when the stream ended before its first byte and may, or on a cut."""
        filled = 0
        while filled < len(into):
            if self._connection.stopping.is_set():
                raise TransportError("the connection was cut")
            count = self._connection.sock.recv_into(into[filled:])
            if count == 0:
                if may_end and filled == 0:
                    return False
                raise TransportError(f"the stream ended {len(into) - filled} bytes before its page was whole")
            filled += count
        return True
