"""The listener: bounds, logging of what ends a connection, and threads that all come home."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.transport.rig import eventually

from kvfence.protocol.errors import InternalError
from kvfence.transport import TransportError, listener
from kvfence.transport.listener import Connection, Listener


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


@pytest.fixture
def own_threads() -> Callable[[], set[threading.Thread]]:
    """Threads that came since the test began; other tests of the run may have left some of theirs."""
    before = set(threading.enumerate())
    return lambda: set(threading.enumerate()) - before


def call(server: socket.socket) -> socket.socket:
    return socket.create_connection(server.getsockname(), timeout=20)


def echo(connection: Connection) -> None:
    while data := connection.sock.recv(100):
        connection.sock.sendall(data)


def test_connections_are_served_side_by_side(
    server: socket.socket, own_threads: Callable[[], set[threading.Thread]]
):
    listening = Listener(server, echo, lambda: None)
    with call(server) as one, call(server) as two:
        two.sendall(b"2")
        one.sendall(b"1")
        assert (one.recv(1), two.recv(1)) == (b"1", b"2")
    listening.close()
    assert own_threads() == set()
    listening.close()


def test_one_too_many_is_turned_away(server: socket.socket, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listener, "WRITERS_MAX", 1)
    listening = Listener(server, echo, lambda: None)
    with call(server) as one:
        one.sendall(b"1")
        assert one.recv(1) == b"1"
        with call(server) as two:
            assert two.recv(1) == b""
    eventually(lambda: all(c.join(0) for c in listening._connections), "the first is over")
    with call(server) as three:
        three.sendall(b"3")
        assert three.recv(1) == b"3"
    listening.close()


@pytest.mark.parametrize("error", [TransportError("it lied"), OSError(104, "it lied")])
def test_what_ends_a_connection_is_logged_and_wakes(
    server: socket.socket, error: Exception, caplog: pytest.LogCaptureFixture
):
    def fail(connection: Connection) -> None:
        raise error

    woken = threading.Event()
    listening = Listener(server, fail, woken.set)
    with call(server) as one:
        assert one.recv(1) == b""
    assert woken.wait(20)
    listening.close()
    assert "it lied" in caplog.text


def test_a_thread_that_does_not_end_is_our_fault_and_said(
    server: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    own_threads: Callable[[], set[threading.Thread]],
):
    monkeypatch.setattr(listener, "CLOSE_SECONDS", 0.01)
    started, freed = threading.Event(), threading.Event()

    def stuck(connection: Connection) -> None:
        started.set()
        freed.wait(20)

    listening = Listener(server, stuck, lambda: None)
    with call(server):
        assert started.wait(20)
        with pytest.raises(InternalError, match="did not end"):
            listening.close()
    freed.set()
    eventually(lambda: own_threads() == set(), "the thread ends")


def test_a_connection_without_a_thread_is_joined_and_stops_twice():
    left, right = socket.socketpair()
    connection = Connection(left)
    assert connection.join(0)
    right.close()
    connection.stop()
    connection.stop()
    connection.close()
    connection.stop()
    assert connection.stopping.is_set()


def test_a_connection_without_room_for_its_thread_is_turned_away(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
):
    def no_thread(connection: Connection, run: object, name: str) -> None:
        raise RuntimeError("can't start new thread")

    listening = Listener(server, echo, lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "start", no_thread)
        with call(server) as one:
            assert one.recv(1) == b""
    with call(server) as two:
        two.sendall(b"2")
        assert two.recv(1) == b"2"
    listening.close()


def test_a_failing_accept_does_not_end_the_listener(server: socket.socket, caplog: pytest.LogCaptureFixture):
    class Flaky:
        """Accepts at the second try."""

        def __init__(self) -> None:
            self.failed = False

        def accept(self) -> tuple[socket.socket, object]:
            if not self.failed:
                self.failed = True
                raise OSError(24, "Too many open files")
            return server.accept()

        def __getattr__(self, name: str) -> object:
            return getattr(server, name)

    listening = Listener(Flaky(), echo, lambda: None)  # type: ignore[arg-type]
    with call(server) as one:
        one.sendall(b"1")
        assert one.recv(1) == b"1"
    listening.close()
    assert "Too many open files" in caplog.text
