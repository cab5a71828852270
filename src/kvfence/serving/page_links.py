"""The page connections of a prefill node: one for each decode incarnation that said hello.

A connection that is lost, or told to go, is torn down until the transport says that nothing reads our
pages any more; only then is it `destroyed`, and only then may another to the same incarnation be made.
"""

import math
from collections.abc import Callable

import structlog

from kvfence.kv import Pool
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import LeaseId, Peer
from kvfence.transport import (
    Completion,
    Denial,
    PageWriter,
    Transport,
    TransportError,
    WriteBatch,
    WriterDenied,
)

TEARDOWN_POLL_SECONDS = 0.02
LINKS_MAX = 64

log = structlog.get_logger()


class PageLinks:
    """Opens, polls and tears down page writers. Loop thread only; `wake` is called from theirs."""

    def __init__(
        self, *, transport: Transport, me: Peer, secret: bytes, pool: Pool, wake: Callable[[], None]
    ) -> None:
        self._transport, self._me, self._secret, self._pool, self._wake = transport, me, secret, pool, wake
        self._writers: dict[Peer, PageWriter] = {}
        self._leaving: dict[Peer, PageWriter] = {}
        self._absent: list[Peer] = []  # told to go while there was no connection; until the next poll

    def __len__(self) -> int:
        return len(self._writers)

    def connect(self, peer: Peer, address: str) -> bool:
        """Connect unless connected; True when a new connection stands, which proves older ones quiet.

        A peer that cannot be reached is tried again at its next hello.

        Raises OperatorError when the peer refuses this incarnation for good: the node must end, and be
        started again under a new one.
        """
        if peer in self._writers or peer in self._leaving or len(self._writers) >= LINKS_MAX:
            return False
        try:
            self._writers[peer] = self._transport.connect(
                address=address,
                me=self._me,
                target=peer,
                secret=self._secret,
                source_pool=self._pool,
                wake=self._wake,
            )
        except WriterDenied as denied:
            if denied.denial is Denial.STALE_WRITER:
                raise OperatorError(
                    f"{peer.node} has cut this incarnation: start it again ({denied})"
                ) from denied
            log.warning("page connection refused", peer=peer.node, why=denied.denial.value)
        except TransportError as error:
            log.warning("page connection failed", peer=peer.node, why=str(error))
        else:
            log.info("page connection open", peer=peer.node)
            return True
        return False

    def post(self, peer: Peer, batch: WriteBatch) -> bool:
        """Hand a batch over. False, and nothing was or will be written, when there is no connection."""
        writer = self._writers.get(peer)
        if writer is None:
            return False
        writer.post(batch)
        return True

    def stop_posting(self, lease: LeaseId, batch: int) -> None:
        """Whichever connection has the batch posts no more of it."""
        for writer in (*self._writers.values(), *self._leaving.values()):
            writer.stop_posting(lease, batch)

    def destroy(self, peer: Peer) -> None:
        """Begin to tear a connection down; `poll` tells when it is, also where there is none.

        Whoever asked takes no lease for that peer until it is told, and the peer may come back.
        """
        writer = self._writers.pop(peer, None)
        if writer is not None:
            self._leaving[peer] = writer
        elif peer not in self._leaving:
            self._absent.append(peer)
        self._wake()

    def poll(self) -> tuple[list[Completion], list[Peer]]:
        """Completions of all connections, and the peers whose connection is gone after those.

        A connection that was lost begins to be torn down.
        """
        completions: list[Completion] = []
        for peer, writer in list(self._writers.items()):
            completions += writer.poll()
            if not writer.alive:
                log.warning("page connection lost", peer=peer.node)
                self.destroy(peer)
        gone = [peer for peer, writer in self._leaving.items() if writer.destroy()]
        for writer in self._leaving.values():
            completions += writer.poll()
        for peer in gone:
            del self._leaving[peer]
        gone += self._absent
        self._absent = []
        return completions, gone

    def wait_seconds(self) -> float:
        """When to look again; infinity when nothing is being torn down."""
        return TEARDOWN_POLL_SECONDS if self._leaving else math.inf

    def close(self) -> None:
        """Tear everything down."""
        for writer in (*self._writers.values(), *self._leaving.values()):
            writer.destroy()
