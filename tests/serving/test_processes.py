"""A process is named for good and killed by its name, never by its number."""

import os
import signal
import subprocess

import msgspec
import pytest

from kvfence.serving.processes import kill_process, name_process


@pytest.fixture
def child():
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def test_a_running_process_has_one_name(child):
    name = name_process(child.pid)
    assert name == name_process(child.pid)
    assert name != name_process(os.getpid())
    assert name.pid == child.pid


def test_a_number_of_nobody_has_no_name(child):
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert name_process(child.pid) is None, "ended, not reaped"
    child.wait()
    assert name_process(child.pid) is None, "reaped"


def test_the_named_process_is_killed_even_when_stopped(child):
    name = name_process(child.pid)
    child.send_signal(signal.SIGSTOP)
    assert kill_process(name, patience_s=5)
    assert child.wait() == -signal.SIGKILL
    assert kill_process(name, patience_s=0), "who is gone is gone"


def test_another_process_of_that_number_is_left_alone(child):
    name = name_process(child.pid)
    for other in (
        msgspec.structs.replace(name, start_ticks=name.start_ticks - 1),
        msgspec.structs.replace(name, boot="another"),
    ):
        assert kill_process(other, patience_s=5)
    assert child.poll() is None


def test_a_process_that_does_not_end_in_time_is_said(child, monkeypatch):
    name = name_process(child.pid)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    assert not kill_process(name, patience_s=0)
