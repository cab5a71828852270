"""The lock that proves a cut: held by every copy of the passed opening, wherever it lies."""

import os
import socket
import subprocess
import sys

from tests.transport.rig import eventually

from kvfence.transport import CutResult
from kvfence.transport.shm_lock import CutLock


def test_it_is_pending_while_the_first_copy_is_open_and_proven_after():
    lock = CutLock.create()
    assert lock.probe() is CutResult.PENDING
    lock.passed_on()
    lock.passed_on()
    assert lock.probe() is CutResult.PROVEN
    assert lock.probe() is CutResult.PROVEN
    lock.close()
    lock.close()
    assert lock.probe() is CutResult.UNKNOWN


def test_a_copy_that_lies_unread_in_a_socket_holds_it():
    lock = CutLock.create()
    left, right = socket.socketpair()
    socket.send_fds(left, [b"P"], [lock.held_fd])
    lock.passed_on()
    assert lock.probe() is CutResult.PENDING
    left.close()
    right.close()
    assert lock.probe() is CutResult.PROVEN
    lock.close()


def test_a_duplicate_holds_it():
    lock = CutLock.create()
    copy = os.dup(lock.held_fd)
    lock.passed_on()
    assert lock.probe() is CutResult.PENDING
    os.close(copy)
    assert lock.probe() is CutResult.PROVEN
    lock.close()


def test_a_program_that_is_started_does_not_inherit_it():
    lock = CutLock.create()
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False
    ) as child:
        lock.passed_on()
        # Between fork and exec the child has its copy; exec closes it.
        eventually(lambda: lock.probe() is CutResult.PROVEN, "the started program holds nothing")
        child.communicate()
    lock.close()
