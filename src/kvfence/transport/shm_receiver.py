"""The decode end of shm: admits writers, hands each the pool and a lock, and probes the locks.

Rules: the lock exists, held, before anything leaves for the writer, so that there is no moment in which a
writer may have the memory and its cut would be taken for proven. A connection says nothing after its
handshake; its end is told to the node (`wake`), and is no proof.
"""

import socket
from pathlib import Path

from kvfence.kv.pool import Pool
from kvfence.protocol.words import Peer
from kvfence.transport.admission import Claim
from kvfence.transport.base import CutResult, TransportError, Wake
from kvfence.transport.handshake import ReceiverHandshake
from kvfence.transport.listener import Connection
from kvfence.transport.receiver import AdmittingReceiver
from kvfence.transport.shm_lock import CutLock

REGISTRATION = b"P"  # the byte that carries the descriptors


class ShmSession:
    """One writer incarnation that maps the pool."""

    def __init__(self, connection: Connection) -> None:
        self.lock = CutLock.create()
        self._connection = connection

    def quiesce(self) -> CutResult:
        """Hang up, which tells a healthy writer to unmap, and probe the lock.

        The writer closes its end after the lock, and that end wakes the node: time to ask again.
        """
        self._connection.hang_up()
        result = self.lock.probe()
        if result is CutResult.PROVEN:
            self.lock.close()
        return result

    def end(self) -> None:
        """Give the probe up: what was not proven by now stays unknown."""
        self.lock.close()


class ShmReceiver(AdmittingReceiver[ShmSession]):
    """Hands the pool to each writer that is admitted. A cut is PROVEN once no process holds its lock."""

    transport = "shm"

    def __init__(
        self,
        sock: socket.socket,
        path: Path,
        *,
        address: str,
        pool: Pool,
        me: Peer,
        secret: bytes,
        wake: Wake,
    ) -> None:
        self._path = path
        super().__init__(sock, address=address, pool=pool, me=me, secret=secret, wake=wake)

    def close(self) -> None:
        """Stop, and remove the socket file. Writers that still map the pool are UNKNOWN from here on."""
        super().close()
        self._path.unlink(missing_ok=True)

    def _open_session(self, connection: Connection) -> ShmSession:
        return ShmSession(connection)

    def _receive(
        self, connection: Connection, handshake: ReceiverHandshake, claim: Claim, session: ShmSession
    ) -> None:
        try:
            handshake.admit(pages=self._pool.pages, layout=self._pool.layout.fingerprint())
            socket.send_fds(connection.sock, [REGISTRATION], [self._pool.fd, session.lock.held_fd])
        finally:
            session.lock.passed_on()
        self._wake()
        if connection.sock.recv(1):
            raise TransportError(f"{claim.writer.node} spoke on a connection on which nothing is said")
