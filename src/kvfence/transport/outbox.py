"""What lies between the node that posts batches and the thread that writes them.

    post -> queued -> taken by the thread -> one completion -> poll

Rules: every posted batch has exactly one completion; the queue is bounded; after `close` nothing is taken
any more, and what was still queued is lost, quietly, since none of it was begun.

It copies no byte. All methods may be called from any thread, except that one thread alone takes.
"""

import os
import threading
from collections import deque
from dataclasses import dataclass

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId
from kvfence.transport.base import BATCHES_QUEUED_MAX, BatchLost, Completion, Loss, Wake, WriteBatch


@dataclass(slots=True)
class _Posted:
    batch: WriteBatch
    stop: bool = False


class Outbox:
    """Queue, stop marks and completions of one writer. `bell` becomes readable when there is work."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._posted: dict[tuple[LeaseId, int], _Posted] = {}
        self._queue: deque[_Posted] = deque()
        self._completions: deque[Completion] = deque()
        self._closed: Loss | None = None
        self.bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def post(self, batch: WriteBatch) -> None:
        """Queue the batch, or complete it as lost at once when it cannot be."""
        key = (batch.lease, batch.batch)
        with self._lock:
            invariant(key not in self._posted, f"batch {key} is posted while one of that name is in flight")
            why = self._refusal()
            if why is None:
                posted = self._posted[key] = _Posted(batch)
                self._queue.append(posted)
                os.eventfd_write(self.bell, 1)
                return
            self._completions.append(BatchLost(batch.lease, batch.batch, why, quiet=True, detail="not begun"))
        self._wake()

    def stop_posting(self, lease: LeaseId, batch: int) -> None:
        """Mark the batch; the thread sees it before the next page."""
        with self._lock:
            posted = self._posted.get((lease, batch))
            if posted is not None:
                posted.stop = True

    def poll(self) -> list[Completion]:
        """Take all completions, oldest first."""
        with self._lock:
            taken = list(self._completions)
            self._completions.clear()
            return taken

    def take(self) -> WriteBatch | None:
        """The next batch to write, None when there is none (now, or ever, after `close`)."""
        with self._lock:
            _drain(self.bell)
            if self._closed is not None or not self._queue:
                return None
            return self._queue.popleft().batch

    def verdict(self, batch: WriteBatch) -> Loss | None:
        """Why no further page of a taken batch may be written; None while it may."""
        with self._lock:
            if self._closed is not None:
                return self._closed
            return Loss.STOPPED if self._posted[batch.lease, batch.batch].stop else None

    def finish(self, completion: Completion) -> None:
        """The thread is done with a taken batch."""
        with self._lock:
            del self._posted[completion.lease, completion.batch]
            self._completions.append(completion)
        self._wake()

    @property
    def closed(self) -> Loss | None:
        """Why nothing is taken any more; None while it is."""
        return self._closed

    def close(self, why: Loss) -> None:
        """Lose everything that was not begun. The first reason stays. Idempotent."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = why
            for posted in self._queue:
                key = (posted.batch.lease, posted.batch.batch)
                del self._posted[key]
                self._completions.append(BatchLost(*key, why, quiet=True, detail="not begun"))
            self._queue.clear()
            os.eventfd_write(self.bell, 1)
        self._wake()

    def release(self) -> None:
        """The thread is gone, after `close`: give the bell up, and complete what it left behind.

        Only a fault of our own leaves a batch taken and not finished. Nothing is known of it.
        """
        with self._lock:
            invariant(self._closed is not None, "the outbox is released while it still takes batches")
            os.close(self.bell)
            for lease, batch in self._posted:
                self._completions.append(
                    BatchLost(lease, batch, Loss.CONNECTION, quiet=False, detail="the writer's thread failed")
                )
            self._posted.clear()
        self._wake()

    def _refusal(self) -> Loss | None:
        if self._closed is not None:
            return self._closed
        return Loss.QUEUE_FULL if len(self._queue) >= BATCHES_QUEUED_MAX else None


def _drain(bell: int) -> None:
    try:
        os.eventfd_read(bell)
    except BlockingIOError:
        return  # nobody rang since the last look
