"""The prefill end of shm: the decode node's pool, mapped, and the thread's copy into it.

Rules: the mapping is not inherited by children; the lock is closed after the mapping is gone, and never
before, whatever fails. Within a page the payload is stored before the trailer. Before every page the
connection is looked at: a receiver that hung up has died or has cut us.
"""

import array
import mmap
import os
import select
import socket
from time import perf_counter

import numpy as np

from kvfence.kv.layout import PageLayout
from kvfence.kv.pool import Bytes, Pool
from kvfence.protocol.errors import invariant
from kvfence.transport.base import (
    BatchLost,
    BatchWritten,
    Completion,
    Loss,
    PagePause,
    TransportError,
    WriteBatch,
)
from kvfence.transport.writer import Verdict

REGISTRATION_FDS = 2


class TargetMapping:
    """The decode pool in this process, and the lock that says so. `pages` are those that may be written."""

    def __init__(self, pool_fd: int, lock_fd: int, layout: PageLayout, pages: int) -> None:
        """Take both descriptors over, also when it raises OSError."""
        self._lock_fd: int | None = lock_fd
        self.pages = pages
        self.payload_bytes = layout.payload_bytes
        size_bytes = pages * layout.page_bytes
        try:
            self._mapping = mmap.mmap(pool_fd, size_bytes, flags=mmap.MAP_SHARED)
        except BaseException:
            os.close(lock_fd)
            raise
        finally:
            os.close(pool_fd)
        self._mapping.madvise(mmap.MADV_DONTFORK)
        self._rows: Bytes = np.frombuffer(self._mapping, np.uint8).reshape(pages, layout.page_bytes)

    def page(self, index: int) -> Bytes:
        """A writable view of a target page. It must be dropped before `unmap`."""
        row: Bytes = self._rows[index]
        return row

    def unmap(self) -> None:
        """Give the memory up, then the lock. Raises BufferError, the lock still held, if a view lives."""
        if self._lock_fd is None:
            return
        if not self._mapping.closed:
            self._rows = np.empty((0, 0), np.uint8)
            self._mapping.close()
        os.close(self._lock_fd)
        self._lock_fd = None


def receive_registration(sock: socket.socket, layout: PageLayout, pages: int) -> TargetMapping:
    """Take the pool and the lock from the socket and map. Raises TransportError or OSError."""
    fds = _receive_fds(sock)
    if len(fds) != REGISTRATION_FDS:
        for fd in fds:
            os.close(fd)
        raise TransportError("the receiver closed the connection before it handed over its pool")
    pool_fd, lock_fd = fds
    if pages < 1 or os.fstat(pool_fd).st_size < pages * layout.page_bytes:
        # The lock last, as always, though nothing is mapped.
        os.close(pool_fd)
        os.close(lock_fd)
        raise TransportError(
            f"the pool that was handed over is smaller than the {pages} pages it should hold"
        )
    return TargetMapping(pool_fd, lock_fd, layout, pages)


def _receive_fds(sock: socket.socket) -> list[int]:
    fds = array.array("i")
    room = socket.CMSG_SPACE(REGISTRATION_FDS * fds.itemsize)
    _, ancillary, _, _ = sock.recvmsg(1, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


class ShmLink:
    """Writes batches into a mapped pool. Owns the socket and the mapping; borrows the source pool."""

    def __init__(
        self, sock: socket.socket, mapping: TargetMapping, source: Pool, pause: PagePause | None
    ) -> None:
        self._sock = sock
        self._fd = sock.fileno()
        self._mapping = mapping
        self._source = source
        self._pause = pause
        self.source_pages = source.pages
        self.target_pages = mapping.pages

    def fileno(self) -> int:
        """The socket's descriptor, as it was when connected."""
        return self._fd

    def write(self, batch: WriteBatch, verdict: Verdict) -> Completion:
        """Store the pages, one by one. What was not stored when this returns never will be: always quiet."""
        started = perf_counter()
        for index in range(len(batch.sources)):
            why = verdict(batch) or (Loss.CONNECTION if self._hung_up() else None)
            if why is not None:
                detail = f"{why.value} after {index} of {len(batch.sources)} pages"
                return BatchLost(batch.lease, batch.batch, why, quiet=True, detail=detail)
            self._store(batch, index)
        written_bytes = len(batch.sources) * (self._mapping.payload_bytes + len(batch.trailer(0)))
        return BatchWritten(batch.lease, batch.batch, written_bytes, perf_counter() - started)

    def interrupt(self) -> None:
        """Nothing to wake: a store does not wait for anybody."""

    def release(self) -> None:
        """Unmap, let the lock go, close the connection."""
        self._mapping.unmap()
        self._sock.close()

    def _store(self, batch: WriteBatch, index: int) -> None:
        page = self._mapping.page(batch.targets[index].page)
        split = self._mapping.payload_bytes
        source = self._source.payload(batch.sources[index])
        invariant(len(source) == split, "source and target pages have one layout")
        if self._pause is None:
            np.copyto(page[:split], source)
        else:
            half = split // 2
            np.copyto(page[:half], source[:half])
            self._pause(batch, index)
            np.copyto(page[half:split], source[half:])
        np.copyto(page[split:], np.frombuffer(batch.trailer(index), np.uint8))

    def _hung_up(self) -> bool:
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        return bool(poller.poll(0))
