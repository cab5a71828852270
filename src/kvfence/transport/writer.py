"""The writing end of every transport of ours: an outbox, a thread, and a link that moves one batch.

Rules: the thread alone uses the link, so that its end is the end of every read and write; it checks the
batch's range before it begins, and asks before every page whether it still may; it never re-posts; it ends
when the connection is lost or destroyed, releases the link itself, and never dies without completions.

How bytes travel is the link's: `ShmLink`, `TcpLink`.
"""

import logging
import select
import threading
from collections.abc import Callable
from typing import Protocol

from kvfence.protocol.words import LeaseId, Peer
from kvfence.transport.base import BatchLost, Completion, Loss, Wake, WriteBatch
from kvfence.transport.outbox import Outbox

DESTROY_SECONDS = 0.1  # the longest that `destroy` waits for the thread before it says False

log = logging.getLogger("kvfence.transport")

Verdict = Callable[[WriteBatch], Loss | None]


class Link(Protocol):
    """The part of a writer that differs between transports. Used by the writer's thread alone."""

    source_pages: int
    target_pages: int

    def fileno(self) -> int:
        """The socket; readable while no batch is being written means that the receiver is gone."""

    def write(self, batch: WriteBatch, verdict: Verdict) -> Completion:
        """Write the pages in order, asking `verdict` before each. Never raises for what a peer can do."""

    def interrupt(self) -> None:
        """Wake the thread from whatever it waits for in `write`. Called from the node's thread."""

    def release(self) -> None:
        """Let go of the target and of the source pool's pages; after it nothing is read or written."""


class QueuedWriter:
    """A `PageWriter` (see base) over a link, which it owns."""

    def __init__(self, peer: Peer, link: Link, wake: Wake) -> None:
        self._peer = peer
        self._link = link
        self._outbox = Outbox(wake)
        self._released = False
        self._thread = threading.Thread(target=self._run, name=f"kvfence-write-{peer.node}", daemon=True)
        self._thread.start()

    @property
    def peer(self) -> Peer:
        """The decode incarnation at the other end."""
        return self._peer

    @property
    def alive(self) -> bool:
        """False once the connection is lost or destroyed."""
        return self._outbox.closed is None

    def post(self, batch: WriteBatch) -> None:
        """Queue the batch; exactly one completion follows."""
        self._outbox.post(batch)

    def stop_posting(self, lease: LeaseId, batch: int) -> None:
        """Post no further page of that batch; its completion still comes."""
        self._outbox.stop_posting(lease, batch)

    def poll(self) -> list[Completion]:
        """Take the completions that came since the last call."""
        return self._outbox.poll()

    def destroy(self) -> bool:
        """True once the thread has ended and the link is released."""
        self._outbox.close(Loss.DESTROYED)
        if self._thread.is_alive():
            self._link.interrupt()
            self._thread.join(DESTROY_SECONDS)
        return not self._thread.is_alive() and self._released

    def _run(self) -> None:
        try:
            while self._wait():
                while (batch := self._outbox.take()) is not None:
                    self._finish(self._write(batch))
        finally:
            self._outbox.close(Loss.CONNECTION)
            self._link.release()
            self._released = True
            self._outbox.release()

    def _wait(self) -> bool:
        """Sleep until there is work (True) or the connection is over (False)."""
        if self._outbox.closed is not None:
            return False  # its ring was heard while a batch was being written
        poller = select.poll()
        poller.register(self._outbox.bell, select.POLLIN)
        poller.register(self._link.fileno(), select.POLLIN)
        rung = {fd for fd, _ in poller.poll()}
        # Nothing is said on an idle connection: whatever makes its socket readable is its end.
        return self._link.fileno() not in rung and self._outbox.closed is None

    def _finish(self, completion: Completion) -> None:
        self._outbox.finish(completion)
        if isinstance(completion, BatchLost):
            log.info(
                "batch %d of lease %s was lost: %s", completion.batch, completion.lease, completion.detail
            )
            if completion.why is Loss.CONNECTION:
                # A connection that failed once is over: what comes after is lost without being begun.
                self._outbox.close(Loss.CONNECTION)

    def _write(self, batch: WriteBatch) -> Completion:
        fault = _range_fault(batch, self._link)
        if fault is not None:
            return BatchLost(batch.lease, batch.batch, Loss.OUT_OF_RANGE, quiet=True, detail=fault)
        return self._link.write(batch, self._outbox.verdict)


def _range_fault(batch: WriteBatch, link: Link) -> str | None:
    """Name the first page that is not registered, on either side."""
    for source in batch.sources:
        if not 0 <= source < link.source_pages:
            return f"source page {source} is outside the writer's pool of {link.source_pages}"
    for target in batch.targets:
        if not 0 <= target.page < link.target_pages:
            return f"target page {target.page} is outside the registered {link.target_pages}"
    return None
