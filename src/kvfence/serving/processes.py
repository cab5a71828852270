"""Naming a process so that no other can be taken for it, and killing exactly that one.

A process number is reused; a number with its start time, in ticks since a boot that has an id, is not.
A signal goes through a process descriptor that was opened before the start time was compared, so that
the process cannot be replaced by another in between.

It reads /proc: Linux only, like the descriptors.
"""

import contextlib
import os
import select
import signal
from pathlib import Path

import msgspec

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
START_TIME_FIELD = 22 - 4  # field 22 of /proc/<pid>/stat, counted from behind number, name and state
ENDED_STATES = ("Z", "X", "x")


class ProcessName(msgspec.Struct, frozen=True):
    """One process for good."""

    pid: int
    start_ticks: int
    boot: str


def name_process(pid: int) -> ProcessName | None:
    """Name a process; None when there is none of that number, or it has ended and was not reaped yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name may hold spaces and brackets: count from its last bracket.
    state, *fields = stat.rpartition(")")[2].split()
    if state in ENDED_STATES:
        return None
    return ProcessName(pid, int(fields[START_TIME_FIELD]), BOOT_ID.read_text().strip())


def kill_process(name: ProcessName, *, patience_s: float) -> bool:
    """Kill the process of that name and wait for its end. True when it is gone, or never was there.

    False: it was killed and did not end in time (it hangs in the kernel).
    """
    try:
        fd = os.pidfd_open(name.pid)
    except ProcessLookupError:
        return True
    try:
        if name_process(name.pid) != name:
            return True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        readable, _, _ = select.select([fd], [], [], patience_s)
        return bool(readable)
    finally:
        os.close(fd)
