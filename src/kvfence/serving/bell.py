"""A descriptor that wakes a thread out of its poll.

Rules: rings that come before they are heard are one; after `close` a ring does nothing, so that it never
reaches a file that was given the same number since.
"""

import os
import threading


class Bell:
    """`ring` may be called from any thread, after `close` too; the rest is the sleeper's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closed = False

    def fileno(self) -> int:
        """The descriptor; readable from a ring on until `hush`."""
        return self._fd

    def ring(self) -> None:
        """Wake the sleeper, or let it not fall asleep."""
        with self._lock:
            if not self._closed:
                os.eventfd_write(self._fd, 1)

    def hush(self) -> None:
        """The ring was heard."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return  # nobody rang since the last look

    def close(self) -> None:
        """Let go of the descriptor, once nobody sleeps on it."""
        with self._lock:
            self._closed = True
            os.close(self._fd)
