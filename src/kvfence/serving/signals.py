"""Ctrl-C and SIGTERM as something that a selector can wait for.

A handler may run between any two instructions, so it only counts and makes a descriptor readable; what a
signal means is decided by whoever waits. Only the main thread may take signals over.
"""

import contextlib
import os
import signal
from types import FrameType, TracebackType
from typing import Self


class SignalCounter:
    """Counts the two signals while it is entered; the handlers of before come back afterwards."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        """Take nothing over yet."""
        self.seen: list[signal.Signals] = []
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __enter__(self) -> Self:
        """Take the signals over."""
        self._before = {number: signal.signal(number, self._count) for number in self.NUMBERS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._fd)

    def _count(self, number: int, _frame: FrameType | None) -> None:
        self.seen.append(signal.Signals(number))
        os.eventfd_write(self._fd, 1)

    def fileno(self) -> int:
        """The descriptor; readable from a signal on until `clear`."""
        return self._fd

    def clear(self) -> None:
        """Let the next signal be what wakes the selector; `seen` keeps counting."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._fd)
