"""The KV pool: one shared buffer of pages, page-major, each page with its seal at its end.

Rules: the buffer is a memory file without a name, so nothing outlives its last holder; it is allocated
whole before it is used (a short machine is an error at start, not a signal later); its size can no
longer change; children of this process do not inherit the mapping. After the leasable pages lies one
padding page of zeros, which is never leased.

It does not know who owns a page: that is the ledger's. It moves bytes only inside itself.
"""

import fcntl
import mmap
import os
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from kvfence.kv.layout import PageLayout
from kvfence.kv.memory import available_memory_bytes
from kvfence.kv.seal import SEAL_DTYPE, Words
from kvfence.protocol.errors import OperatorError, invariant

Bytes = npt.NDArray[np.uint8]

SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
PADDING_PAGES = 1
SPARE_SHARE = 16  # of the available memory, 1/SPARE_SHARE stays for the rest of the machine


class Pool:
    """A mapped pool. Views that its methods return live as long as the mapping, not as long as a lease.

    `pages` is read back from the buffer. `buffer` is every byte; `trailers` every seal (SEAL_DTYPE,
    padding page included), `seals` the same as eight words each and `headers` the first four of them; all
    without a copy. `tokens` is the capacity.
    """

    def __init__(self, fd: int, layout: PageLayout) -> None:
        """Map `fd`, which this pool owns from here on. Use `create` or `attach`."""
        self.fd = fd
        self.closed = False
        self.layout = layout
        size_bytes = os.fstat(fd).st_size
        self.pages = size_bytes // layout.page_bytes - PADDING_PAGES
        mapping = mmap.mmap(fd, size_bytes, flags=mmap.MAP_SHARED)
        mapping.madvise(mmap.MADV_DONTFORK)
        rows = self.pages + PADDING_PAGES
        stride = layout.page_bytes
        self.buffer: Bytes = np.frombuffer(mapping, np.uint8)
        self.rows: Bytes = self.buffer.reshape(rows, stride)
        self.trailers: npt.NDArray[Any] = np.ndarray(
            (rows,), SEAL_DTYPE, self.buffer, layout.payload_bytes, (stride,)
        )
        self.seals: Words = np.ndarray((rows, 8), np.uint64, self.buffer, layout.payload_bytes, (stride, 8))
        self.headers: Words = self.seals[:, :4]

    @classmethod
    def create(cls, layout: PageLayout, pages: int, *, available_bytes: int | None = None) -> Self:
        """Allocate `pages` leasable pages and the padding page.

        `available_bytes` replaces what the machine says is free. Raises OperatorError when the memory
        is not there.
        """
        if pages < 1:
            raise OperatorError(f"a pool of {pages} pages holds nothing: raise --pool-tokens")
        size_bytes = (pages + PADDING_PAGES) * layout.page_bytes
        room = available_memory_bytes() if available_bytes is None else available_bytes
        # Past this the kernel does not refuse an allocation: it kills a process, and not always this one.
        if room is not None and size_bytes > room - room // SPARE_SHARE:
            raise _too_large(layout, pages, size_bytes, f"only {room:,} bytes are available")
        fd = os.memfd_create("kvfence-pool", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, size_bytes)
            os.posix_fallocate(fd, 0, size_bytes)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SIZE_SEALS)
            return cls(fd, layout)
        except OSError as error:
            os.close(fd)
            raise _too_large(layout, pages, size_bytes, f"the system said: {error.strerror}") from error

    @classmethod
    def attach(cls, fd: int, layout: PageLayout, pages: int) -> Self:
        """Map another process's pool, of which it said that it has `pages`. Takes `fd` over.

        Raises OperatorError when the buffer is not what was said, before a byte is mapped; `fd` is then
        still the caller's.
        """
        expected_bytes = (pages + PADDING_PAGES) * layout.page_bytes
        size_bytes = os.fstat(fd).st_size
        if pages < 1 or size_bytes != expected_bytes:
            raise OperatorError(
                f"a pool of {pages} pages of {layout.page_bytes} bytes and its padding page is "
                f"{expected_bytes:,} bytes, but the buffer handed over has {size_bytes:,}: "
                "start all nodes with the same model, dtype and page size"
            )
        if _size_can_change(fd):
            raise OperatorError(
                "the buffer handed over can still change its size, so that reading it could kill this "
                "process: it is no pool of kvfence; check what listens at the peer's address"
            )
        return cls(fd, layout)

    @property
    def padding_page(self) -> int:
        """The page of zeros after the last leasable one."""
        return self.pages

    @property
    def tokens(self) -> int:
        """Slots in the leasable pages."""
        return self.pages * self.layout.page_tokens

    def page(self, index: int) -> Bytes:
        """Payload and trailer of a page, as a writable view."""
        invariant(0 <= index <= self.pages, f"page {index} is outside a pool of {self.pages}")
        row: Bytes = self.rows[index]
        return row

    def payload(self, index: int) -> Bytes:
        """What a page holds, without its trailer, as a writable view."""
        return self.page(index)[: self.layout.payload_bytes]

    def trailer(self, index: int) -> Bytes:
        """The 64 bytes of a page's seal, as a writable view."""
        return self.page(index)[self.layout.payload_bytes :]

    def zero_slots(self, page: int, first_slot: int) -> None:
        """Zero the slots from `first_slot` on, in every region: what is masked must still be finite."""
        invariant(0 <= first_slot <= self.layout.page_tokens, f"slot {first_slot} is outside a page")
        payload = self.payload(page)
        for region in self.layout.regions:
            start = region.offset + first_slot * region.slot_bytes
            payload[start : region.offset + region.region_bytes] = 0

    def close(self) -> None:
        """Give the buffer up. The mapping itself goes when the last view of it is dropped."""
        if self.closed:
            return
        self.closed = True
        del self.buffer, self.rows, self.trailers, self.seals, self.headers
        os.close(self.fd)


def _size_can_change(fd: int) -> bool:
    try:
        return fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SIZE_SEALS != SIZE_SEALS
    except OSError:  # no memory file at all
        return True


def _too_large(layout: PageLayout, pages: int, size_bytes: int, why: str) -> OperatorError:
    return OperatorError(
        f"a pool of {pages * layout.page_tokens:,} tokens ({pages:,} pages) needs {size_bytes:,} bytes and "
        f"{why}: lower --pool-tokens, or give the node more memory"
    )
