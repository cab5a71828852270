"""The prefill end of tcp: sends the pages of a batch and waits until the receiver says that they are placed.

Rules: before every page it asks whether it may go on; a batch that is stopped midway still waits for the
answer about what it had sent, so that its loss is quiet; when the connection breaks, a batch of which a byte
was sent is lost and not quiet.
"""

import socket
import threading
from time import perf_counter

from kvfence.kv.pool import Pool
from kvfence.transport.base import (
    BatchLost,
    BatchWritten,
    Completion,
    Loss,
    PagePause,
    TransportError,
    WriteBatch,
)
from kvfence.transport.handshake import Admitted
from kvfence.transport.tcp_frames import (
    FROM_RECEIVER,
    FROM_WRITER,
    HEADER_BYTES,
    Header,
    HeaderOpener,
    HeaderSealer,
    Kind,
)
from kvfence.transport.tcp_socket import receive_exactly, send_all
from kvfence.transport.writer import Verdict


class TcpLink:
    """Sends batches on one connection. Owns the socket; borrows the source pool."""

    def __init__(
        self, sock: socket.socket, admitted: Admitted, source: Pool, pause: PagePause | None
    ) -> None:
        self._sock = sock
        self._fd = sock.fileno()
        self._source = source
        self._pause = pause
        self._sealer = HeaderSealer(admitted.session_key, FROM_WRITER)
        self._opener = HeaderOpener(admitted.session_key, FROM_RECEIVER)
        self._closing = threading.Lock()
        self.source_pages = source.pages
        self.target_pages = admitted.pages

    def fileno(self) -> int:
        """The socket's descriptor, as it was when connected."""
        return self._fd

    def write(self, batch: WriteBatch, verdict: Verdict) -> Completion:
        """Send the pages and wait for the answer. Blocks while the receiver takes nothing."""
        started = perf_counter()
        sent = 0
        why: Loss | None = None
        try:
            for index in range(len(batch.sources)):
                why = verdict(batch)
                if why is not None:
                    break
                sent = index + 1
                self._send_page(batch, index)
            if sent:
                self._sync(batch, sent)
        except (OSError, TransportError) as error:
            why = Loss.DESTROYED if verdict(batch) is Loss.DESTROYED else Loss.CONNECTION
            return BatchLost(batch.lease, batch.batch, why, quiet=sent == 0, detail=str(error))
        if why is not None:
            detail = f"{why.value} after {sent} of {len(batch.sources)} pages"
            return BatchLost(batch.lease, batch.batch, why, quiet=True, detail=detail)
        written_bytes = sent * self._source.layout.page_bytes
        return BatchWritten(batch.lease, batch.batch, written_bytes, perf_counter() - started)

    def interrupt(self) -> None:
        """Shut the socket down, which wakes the thread from a send or an answer that does not come."""
        with self._closing:
            if self._sock.fileno() >= 0:
                try:
                    self._sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    return  # the receiver was faster: there is no wait left to end

    def release(self) -> None:
        """Close the socket. What the kernel still holds of it are copies, not our pages."""
        with self._closing:
            self._sock.close()

    def _send_page(self, batch: WriteBatch, index: int) -> None:
        header = self._sealer.seal(
            Header(Kind.PAGE, batch.lease, batch.batch, index, batch.targets[index].page)
        )
        payload = self._source.payload(batch.sources[index]).data
        if self._pause is None:
            send_all(self._sock, [header, payload, batch.trailer(index)])
            return
        half = len(payload) // 2
        send_all(self._sock, [header, payload[:half]])
        self._pause(batch, index)
        send_all(self._sock, [payload[half:], batch.trailer(index)])

    def _sync(self, batch: WriteBatch, sent: int) -> None:
        self._sock.sendall(self._sealer.seal(Header(Kind.SYNC, batch.lease, batch.batch, sent)))
        data = bytearray(HEADER_BYTES)
        receive_exactly(self._sock, memoryview(data))
        answer = self._opener.open(data)
        if answer != Header(Kind.SYNCED, batch.lease, batch.batch, sent):
            raise TransportError(f"the receiver answered {answer} to {sent} pages of batch {batch.batch}")
