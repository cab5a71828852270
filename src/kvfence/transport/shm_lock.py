"""The proof of a cut on one machine: a lock that the kernel lets go of when the writer's last file is closed.

    receiver: opens the file twice, locks one opening, passes it to the writer, closes its own copy
    later:    the other opening gets the lock  <=>  no process holds a copy of the passed one

Rules: the passed opening is never unlocked, only closed, and by a writer only after it has unmapped the
pool. Descriptors close on exec. The lock belongs to the opening (flock), not to a process: a copy in a
forked child, or one that still lies unread in a socket, holds it as well.
"""

import fcntl
import os
from typing import Self

from kvfence.transport.base import CutResult


class CutLock:
    """The receiver's half: `held_fd` until it was passed on, and the opening that probes."""

    def __init__(self, held_fd: int, probe_fd: int) -> None:
        self.held_fd = held_fd
        self._held = True
        self._probe_fd: int | None = probe_fd

    @classmethod
    def create(cls) -> Self:
        """A new lock, held. Raises OSError when descriptors run out."""
        held_fd = os.memfd_create("kvfence-cut", os.MFD_CLOEXEC)
        try:
            fcntl.flock(held_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Opening it by its name in /proc makes a second opening, which a duplicate would not be.
            probe_fd = os.open(f"/proc/self/fd/{held_fd}", os.O_RDWR | os.O_CLOEXEC)
        except BaseException:
            os.close(held_fd)
            raise
        return cls(held_fd, probe_fd)

    def passed_on(self) -> None:
        """Close our copy: from here on the writer's alone holds the lock. Idempotent."""
        if self._held:
            self._held = False
            os.close(self.held_fd)

    def probe(self) -> CutResult:
        """PROVEN once every copy of the passed opening is closed; UNKNOWN after `close`."""
        if self._probe_fd is None:
            return CutResult.UNKNOWN
        try:
            fcntl.flock(self._probe_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return CutResult.PENDING
        except OSError:
            # The kernel does not say (ENOLCK): that is no proof of anything.
            return CutResult.UNKNOWN
        return CutResult.PROVEN

    def close(self) -> None:
        """Give the probe up. What was not proven by now is UNKNOWN. Idempotent."""
        if self._probe_fd is not None:
            os.close(self._probe_fd)
            self._probe_fd = None
