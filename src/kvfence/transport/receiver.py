"""The receiving end of every transport of ours: a listener, an admission, and what is proven by it.

Rules: a writer is admitted after it has proven itself, and turned away with the reason; nothing of the pool
leaves before. What follows on its connection, and what proves a cut, is the transport's: `_receive` and the
session that `_open_session` makes.
"""

import socket
from abc import ABC, abstractmethod
from typing import Generic

from kvfence.kv.pool import Pool
from kvfence.protocol.words import Peer
from kvfence.transport.admission import Admission, Claim, SessionT
from kvfence.transport.base import CutResult, Wake, WriterDenied
from kvfence.transport.handshake import ReceiverHandshake
from kvfence.transport.listener import Connection, Listener


class AdmittingReceiver(ABC, Generic[SessionT]):
    """A `PageReceiver` (see base) on a stream socket, which it owns. `transport` is its name on the wire.

    Connections are served from the constructor on: a subclass sets its own attributes before it calls it.
    """

    transport: str

    def __init__(
        self, sock: socket.socket, *, address: str, pool: Pool, me: Peer, secret: bytes, wake: Wake
    ) -> None:
        self._address = address
        self._pool = pool
        self._secret = secret
        self._wake = wake
        self._admission: Admission[SessionT] = Admission(me, pool.layout.fingerprint())
        self._listener = Listener(sock, self._serve, wake)

    @property
    def address(self) -> str:
        """Where writers connect to."""
        return self._address

    def cut(self, peer: Peer) -> CutResult:
        """Revoke the incarnation; what proves it is the session's to say."""
        return self._admission.cut(peer)

    def writers(self) -> tuple[Peer, ...]:
        """Every incarnation that registered and is not proven cut."""
        return self._admission.writers()

    def close(self) -> None:
        """Admit nobody, join every thread, give up what a proof would still need. Idempotent."""
        self._admission.close()
        self._listener.close()
        self._admission.end_sessions()

    @abstractmethod
    def _open_session(self, connection: Connection) -> SessionT:
        """Make the registration of a writer. Called with the admission's lock held."""

    @abstractmethod
    def _receive(
        self, connection: Connection, handshake: ReceiverHandshake, claim: Claim, session: SessionT
    ) -> None:
        """Tell the admitted writer so, and serve its connection to the end. Raises what ended it."""

    def _serve(self, connection: Connection) -> None:
        handshake = ReceiverHandshake(connection.sock, secret=self._secret, transport=self.transport)
        claim = handshake.claim()
        try:
            session = self._admission.admit(claim, lambda: self._open_session(connection))
        except WriterDenied as denied:
            handshake.deny(denied)
            raise
        self._receive(connection, handshake, claim, session)
