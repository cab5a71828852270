"""The accepting side of a stream socket: one thread that accepts, one thread for each connection.

Rules: at most `WRITERS_MAX` connections at a time, the next one is closed at once. A connection's socket is
closed by its own thread, so that nobody shuts down a number that already means another file. What ends a
connection is logged with its reason. `close` returns when every thread has ended.

It knows no protocol: what is said on a connection is `serve`'s.
"""

import logging
import os
import select
import socket
import threading
from collections.abc import Callable

from kvfence.protocol.errors import InternalError
from kvfence.transport.base import WRITERS_MAX, TransportError, Wake

CLOSE_SECONDS = 5.0
BACKLOG = 16

log = logging.getLogger("kvfence.transport")


class Connection:
    """One accepted socket and the thread that serves it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, run: Callable[["Connection"], None], name: str) -> None:
        """Serve in a thread of its own."""
        self._thread = threading.Thread(target=run, args=(self,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, and wake it from whatever it waits for on the socket."""
        self.stopping.set()
        self._shut_down(socket.SHUT_RDWR)

    def hang_up(self) -> None:
        """Tell the other end that it is over, and keep listening for its own end."""
        self._shut_down(socket.SHUT_WR)

    def join(self, seconds: float) -> bool:
        """True when the thread has ended: it executes nothing any more."""
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def close(self) -> None:
        """Close the socket; only the serving thread does."""
        with self._lock:
            self.sock.close()

    def _shut_down(self, how: int) -> None:
        with self._lock:
            if self.sock.fileno() < 0:
                return
            try:
                self.sock.shutdown(how)
            except OSError:
                # Not connected (any more): there is nothing left to wake or to tell.
                log.debug("shutdown of a socket that was no longer connected")


class Listener:
    """Accepts on `sock` (which it owns) and runs `serve(connection)` for each, until `close`."""

    def __init__(self, sock: socket.socket, serve: Callable[[Connection], None], wake: Wake) -> None:
        self._sock = sock
        self._serve = serve
        self._wake = wake
        self._connections: list[Connection] = []  # the accepting thread's; after it has ended, close's
        self._closing = os.eventfd(0, os.EFD_CLOEXEC)
        sock.listen(BACKLOG)
        sock.setblocking(False)  # noqa: FBT003 - the socket module's own signature
        self._thread = threading.Thread(target=self._accept_all, name="kvfence-accept", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting, end every connection, join every thread. Idempotent."""
        if self._sock.fileno() < 0:
            return
        os.eventfd_write(self._closing, 1)
        self._thread.join()
        self._sock.close()
        os.close(self._closing)
        for connection in self._connections:
            connection.stop()
        if not all(connection.join(CLOSE_SECONDS) for connection in self._connections):
            raise InternalError(
                f"a receiving thread did not end within {CLOSE_SECONDS:g} s of its socket's shutdown: "
                "keep the pool mapped and end the process"
            )

    def _accept_all(self) -> None:
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        poller.register(self._closing, select.POLLIN)
        while not any(fd == self._closing for fd, _ in poller.poll()):
            try:
                sock, _ = self._sock.accept()
            except OSError as error:
                # The caller hung up between poll and accept, or this process is out of descriptors.
                log.warning("a connection could not be accepted: %s", error)
                self._closing_soon()
                continue
            self._begin(sock)

    def _closing_soon(self) -> None:
        """Wait a moment for `close`, so that a lasting error of accept does not become a busy loop."""
        select.select([self._closing], [], [], 0.05)

    def _begin(self, sock: socket.socket) -> None:
        sock.setblocking(True)  # noqa: FBT003 - the socket module's own signature
        connection = Connection(sock)
        # A thread is forgotten only once it has ended, so that `close` joins every other one.
        self._connections = [other for other in self._connections if not other.join(0)]
        if len(self._connections) >= WRITERS_MAX:
            log.warning("a connection was turned away: %d are being served", WRITERS_MAX)
            connection.close()
            return
        try:
            connection.start(self._run, "kvfence-pages")
        except RuntimeError as error:
            log.warning("a connection was turned away, no thread could be started: %s", error)
            connection.close()
            return
        self._connections.append(connection)

    def _run(self, connection: Connection) -> None:
        try:
            self._serve(connection)
        except (OSError, TransportError) as error:
            # As text: the error's frames hold views of pages, which a kept log record would keep mapped.
            log.warning("a page connection ended: %s", str(error))
        finally:
            connection.close()
            self._wake()
