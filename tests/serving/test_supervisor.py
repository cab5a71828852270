"""Back-off, and the supervisor over real processes; the launcher's test drives the rest of it."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.serving.fake_deployment import fake_command

from kvfence.protocol.errors import InvariantError
from kvfence.serving.node_config import DecodeConfig, NodeTimes
from kvfence.serving.node_process import NodeProcess, NodeSpec, node_command
from kvfence.serving.progress import Kill, Progress, Ready, Started
from kvfence.serving.rundir import RunDir
from kvfence.serving.supervisor import (
    BACKOFF_FIRST_S,
    BACKOFF_LONGEST_S,
    HEALTHY_S,
    Backoff,
    NodeEnded,
    NodeRestarted,
    NodeSaid,
    StuckProcessesError,
    Supervisor,
)

PATIENCE_S = 20


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def spec_in(run_dir: RunDir, node: str = "decode-0") -> NodeSpec:
    return NodeSpec(
        DecodeConfig(
            node=node,
            run_dir=run_dir.path,
            secret_path=run_dir.secret_path,
            status_fd=0,
            parent_pid=0,
            router_control=run_dir.router_control,
            model_dir=Path("model"),
            context_tokens=128,
            page_tokens=16,
            threads=1,
            cpus=None,
            fence="sealed",
            transport="shm",
            times=NodeTimes(),
            dtype="float32",
            device="cpu",
            pool_tokens=256,
            pool_bytes_max=None,
            batch_size=1,
            data_host="127.0.0.1",
            quarantine_share_max=0.5,
        )
    )


@pytest.fixture
def run_dir():
    with tempfile.TemporaryDirectory(prefix="kvf") as path:
        made = RunDir.create(Path(path))
        yield made
        made.remove()


@pytest.fixture
def supervisor(run_dir):
    made = Supervisor(lambda spec: NodeProcess.start(spec, run_dir, os.environ, fake_command), Clock())
    yield made
    made.close()


def poll_until(supervisor: Supervisor, kind: type) -> list:
    """Poll until an event of this kind comes; all events so far."""
    events, until = [], time.monotonic() + PATIENCE_S
    while not any(isinstance(event, kind) for event in events):
        assert time.monotonic() < until, f"nothing happened in {PATIENCE_S} s after {events}"
        events += supervisor.poll(PATIENCE_S)
    return events


def until_ready(supervisor: Supervisor) -> list:
    events = []
    while not supervisor.all_ready(supervisor.running):
        events += poll_until(supervisor, NodeSaid)
    return events


def test_the_wait_doubles_up_to_a_bound_and_starts_anew_after_a_healthy_minute():
    backoff = Backoff()
    waits = [backoff.wait_s(0) for _ in range(10)]
    assert waits[:4] == [BACKOFF_FIRST_S, 1, 2, 4]
    assert waits[-1] == BACKOFF_LONGEST_S
    assert backoff.wait_s(HEALTHY_S - 1) == BACKOFF_LONGEST_S
    assert backoff.wait_s(HEALTHY_S) == BACKOFF_FIRST_S
    assert backoff.wait_s(0) == 2 * BACKOFF_FIRST_S


def test_a_node_is_started_and_heard(supervisor, run_dir):
    supervisor.start(spec_in(run_dir))
    assert not supervisor.all_ready(["decode-0"])
    said = [event.status for event in until_ready(supervisor)]
    assert [type(status) for status in said] == [Started, Progress, Ready]
    assert supervisor.process("decode-0").ready.pool_tokens == 256
    assert supervisor.running == ("decode-0",)
    assert not supervisor.all_ready(["decode-0", "another"])


def test_its_descriptors_are_its_own_alone(supervisor, run_dir):
    """A node inherits the write end of its pipe, and nothing of the launcher's or of another node."""
    for node in ("decode-0", "decode-1"):
        supervisor.start(spec_in(run_dir, node))
    until_ready(supervisor)
    for node in ("decode-0", "decode-1"):
        pid = supervisor.process(node).pid
        open_fds = sorted(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir())
        assert open_fds[:3] == [0, 1, 2]
        assert len(open_fds) == 4


def test_without_restarts_the_dead_stay_dead(supervisor, run_dir):
    supervisor.start(spec_in(run_dir))
    until_ready(supervisor)
    supervisor.signal(["decode-0", "another"], signal.SIGTERM)
    ended = poll_until(supervisor, NodeEnded)[-1]
    assert ended == NodeEnded("decode-0", 0, None, was_asked_to_die=False, restart_s=None)
    assert supervisor.running == ()
    assert supervisor.poll(0) == []


def test_the_dead_are_started_again_when_their_time_has_come(supervisor, run_dir):
    supervisor.restarts = True
    supervisor.start(spec_in(run_dir))
    until_ready(supervisor)
    for wait_s in (0.5, 1.0):
        supervisor.signal(["decode-0"], signal.SIGKILL)
        ended = poll_until(supervisor, NodeEnded)[-1]
        assert (ended.exit_status, ended.restart_s) == (-signal.SIGKILL, wait_s)
        assert supervisor.poll(0) == [], "not before its time"
        supervisor._clock.now += wait_s
        assert poll_until(supervisor, NodeRestarted)[-1] == NodeRestarted("decode-0")
    until_ready(supervisor)


def test_no_restart_comes_after_restarts_are_over(supervisor, run_dir):
    supervisor.restarts = True
    supervisor.start(spec_in(run_dir))
    supervisor.signal(["decode-0"], signal.SIGKILL)
    poll_until(supervisor, NodeEnded)
    supervisor.restarts = False
    supervisor._clock.now += 100
    assert supervisor.poll(0) == []
    assert supervisor.running == ()


def test_exactly_the_named_incarnation_is_killed(supervisor, run_dir):
    supervisor.start(spec_in(run_dir))
    until_ready(supervisor)
    incarnation = supervisor.process("decode-0").incarnation
    assert not supervisor.kill(Kill(node="decode-0", incarnation=incarnation + 1))
    assert not supervisor.kill(Kill(node="another", incarnation=incarnation))
    assert supervisor.kill(Kill(node="decode-0", incarnation=incarnation))
    ended = poll_until(supervisor, NodeEnded)[-1]
    assert ended.was_asked_to_die
    assert ended.exit_status == -signal.SIGKILL
    assert not supervisor.kill(Kill(node="decode-0", incarnation=incarnation))


def test_a_node_is_not_started_over_itself(supervisor, run_dir):
    supervisor.start(spec_in(run_dir))
    with pytest.raises(InvariantError, match="reaped"):
        supervisor.start(spec_in(run_dir))


def test_closing_kills_the_stopped_too(supervisor, run_dir):
    supervisor.start(spec_in(run_dir))
    supervisor.signal(["decode-0"], signal.SIGSTOP)
    supervisor.close()
    assert supervisor.running == ()


def test_what_hangs_in_the_kernel_is_said(supervisor, run_dir, monkeypatch):
    supervisor.start(spec_in(run_dir))
    until_ready(supervisor)
    with monkeypatch.context() as patch:
        patch.setattr(NodeProcess, "signal", lambda *_: None)
        patch.setattr("kvfence.serving.supervisor.CLOSE_PATIENCE_S", 0)
        with pytest.raises(StuckProcessesError, match="do not end when killed"):
            supervisor.close()


def test_the_command_of_a_real_node_is_this_pythons():
    assert node_command(Path("x.json")) == [sys.executable, "-m", "kvfence.serving.node_main", "x.json"]
