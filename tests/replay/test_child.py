"""The first moment of a launcher: it dies with the replay, and becomes the Python that it was told."""

import os
import subprocess
import sys

from kvfence.replay import child
from tests.e2e.deployment import runs, wait_until


def test_it_becomes_what_it_was_told():
    words = ["-c", "import sys; print(sys.argv[1:])", "a", "b"]
    done = subprocess.run(
        [sys.executable, "-m", "kvfence.replay.child", str(os.getpid()), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['a', 'b']\n"


def test_it_dies_with_its_parent():
    starts = (
        "import os, subprocess, sys\n"
        "made = subprocess.Popen([sys.executable, '-m', 'kvfence.replay.child', str(os.getpid()), '-c', "
        "'import time; print(1, flush=True); time.sleep(60)'], stdout=subprocess.PIPE)\n"
        "made.stdout.readline()\n"
        "print(made.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        pid = int(parent.stdout.readline())
        assert runs(pid)
        parent.kill()
    assert wait_until(lambda: not runs(pid), 10)


def test_the_tie_comes_before_the_exec(monkeypatch):
    did = []
    monkeypatch.setattr(child, "die_with", lambda pid: did.append(("die_with", pid)))
    monkeypatch.setattr(os, "execv", lambda path, words: did.append((path, words)))
    child.main(["7", "-m", "kvfence"])
    assert did == [("die_with", 7), (sys.executable, [sys.executable, "-m", "kvfence"])]
