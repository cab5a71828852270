"""The file of a trace: whole lines of all nodes, a prefix of a killed one, and no reason to stop a node."""

import json
import os
import queue
import stat
import threading

import pytest
import structlog
from tests.protocol.rig import Joined

from kvfence.protocol import events
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer, Role
from kvfence.serving import trace as trace_module
from kvfence.serving.driver import CoreDriver
from kvfence.serving.trace import NodeTrace, deployment_trace, open_trace


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def drive(trace, *given):
    """A router's core under a driver that is watched; what was carried out."""
    core, done = Joined().router, []
    driver = CoreDriver(core, done.append)
    driver.observer = trace.watch(core, Role.ROUTER, None, fence="sealed")
    for event in given:
        driver.feed(event)
    return done


def test_a_node_that_stops_in_order_leaves_a_whole_trace(path):
    with deployment_trace(path, "d1"), open_trace(path, Peer("router", 7)) as trace:
        drive(trace, events.Submitted(1, 8, 4), events.ClientGone(1))
    lines = lines_of(path)
    assert lines[0]["deployment"] == "d1"
    assert [line["step"] for line in lines[1:]] == [0, 1, 2, 3]
    assert lines[1]["start"]["fence"] == "sealed"
    assert lines[-1]["end"] == "stopped"
    assert path.read_bytes().endswith(b"}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_node_that_fails_leaves_its_steps_and_no_last_line(path):
    with (
        pytest.raises(ZeroDivisionError),
        open_trace(path, Peer("router", 7)) as trace,
    ):
        drive(trace, events.Submitted(1, 8, 4))
        raise ZeroDivisionError
    assert [line.get("event") for line in lines_of_nodes(path)] == [None, "Submitted"]


def lines_of_nodes(path):
    """Without a launcher, the first line begins with a line break."""
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_without_a_path_there_is_no_trace_and_no_thread():
    before = threading.active_count()
    with open_trace(None, Peer("router", 7)) as trace:
        assert trace is None
        assert threading.active_count() == before
    assert CoreDriver(Joined().router, lambda _: None).observer is None


def test_a_step_is_traced_before_its_commands_are_carried_out(path):
    seen = []
    core = Joined().router
    driver = CoreDriver(core, lambda command: seen.append(type(command).__name__))
    driver.observer = lambda event, said: seen.append((type(event).__name__, len(said)))
    driver.feed(events.Submitted(1, 8, 4))
    assert seen == [("Submitted", 3), "SendReserve"]


def test_nodes_share_a_file_and_a_torn_line_spoils_itself_alone(path):
    with (
        deployment_trace(path, "d1"),
        open_trace(path, Peer("router", 7)) as first,
        open_trace(path, Peer("router", 8)) as second,
    ):
        drive(first, events.Submitted(1, 8, 4))
        with path.open("ab") as killed:
            killed.write(b'\n{"node":"decode-0","incarna')
        drive(second, events.Submitted(1, 8, 4))
    whole = [line for line in path.read_bytes().splitlines() if line.endswith(b"}")]
    assert len(path.read_bytes().splitlines()) == len(whole) + 1
    assert [json.loads(line).get("incarnation") for line in whole].count("8") == 3


def test_a_file_that_is_there_is_gone_on_with(path):
    path.write_bytes(b'{"an":"older trace"}')
    for deployment in ("d1", "d2"):
        with deployment_trace(path, deployment):
            pass
    lines = lines_of(path)
    assert [line.get("deployment") for line in lines] == [None, "d1", "d2"]


@pytest.mark.parametrize("name", ["nowhere/run.jsonl", "."])
def test_what_cannot_be_written_is_refused_with_a_way_out(tmp_path, name):
    with (
        pytest.raises(OperatorError, match=r"cannot be written .* name a file in a directory"),
        deployment_trace(tmp_path / name, "d1"),
    ):
        raise AssertionError("nothing is started")


def test_a_device_is_no_file_for_a_trace():
    with (
        pytest.raises(OperatorError, match="no ordinary file"),
        open_trace(trace_module.Path("/dev/null"), Peer("router", 7)),
    ):
        raise AssertionError("nothing is started")


def test_a_file_that_takes_no_more_ends_the_trace_and_not_the_node(path):
    read_only = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
    trace = NodeTrace(read_only, Peer("router", 7))
    with structlog.testing.capture_logs() as logs:
        done = drive(trace, events.Submitted(1, 8, 4), events.ClientGone(1))
        trace.close(in_order=True)
    assert [type(command).__name__ for command in done] == [
        "SendReserve",
        *["SendAbort"] * 2,
        "FinishRequest",
    ]
    assert [line["event"] for line in logs] == ["trace ended"]
    assert path.read_bytes() == b""


def test_a_queue_that_is_full_ends_the_trace_and_not_the_node(path, monkeypatch):
    monkeypatch.setattr(trace_module, "QUEUED_STEPS_MAX", 1)
    monkeypatch.setattr(trace_module.threading, "Thread", _NeverRuns)
    trace = NodeTrace(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), Peer("router", 7))
    with structlog.testing.capture_logs() as logs:
        done = drive(trace, *(events.Submitted(number, 8, 4) for number in range(1, 5)))
    assert [line["why"] for line in logs] == ["the file does not keep up with the node"]
    assert len(done) == 4
    assert trace._queue.qsize() == 1
    trace.close(in_order=True)


class _NeverRuns:
    """A thread that gets no time."""

    def __init__(self, **_facts):
        self._queue = queue.SimpleQueue()

    def start(self):
        """Not now."""

    def join(self, _seconds):
        """It has nothing to finish."""

    def is_alive(self):
        return False
