"""The event log of one node (`--trace FILE`): what its core was told, which rows it took, what it said.

    {"trace":1,"deployment":"5f0c…","version":"…"}                                  by the launcher
    {"node":"decode-0","incarnation":"17","role":"decode","step":0,"start":{…}}     the core's settings
    {"node":…,"incarnation":…,"role":…,"step":1,"ms":…,"event":…,"of":{…},"rows":[…],"commands":[…]}
    {"node":…,"incarnation":…,"role":…,"step":91,"end":"stopped"}                   it stopped in order

Rules:
- All nodes append to one file. Each line begins with its line break and is written whole, so that a node
  killed in the midst of a write spoils its own last line alone, and what it wrote before can be read.
- What is shown of a step is said in `kvfence.protocol.trace`: no token ids, prompts, keys or tenants.
- The node never waits for its trace. A step is queued; a thread makes lines of what is queued. Where the
  file cannot be written, or the queue is full, the trace ends with a warning, the node goes on, and the
  missing last line tells the reader that the trace is a prefix.
- Without `--trace` there is no observer, no thread and no file.
"""

import os
import queue
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import structlog

from kvfence import __version__
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import Peer, Role
from kvfence.serving.driver import Observer
from kvfence.serving.trace_lines import Line, Traced, TracedStep, TraceLines, keep_step

TRACE_FORMAT = 1
QUEUED_STEPS_MAX = 65_536
WRITE_LINES_MAX = 256
CLOSE_SECONDS = 5.0

log = structlog.get_logger()


class _Last:
    """Nothing more comes."""


@contextmanager
def deployment_trace(path: Path | None, deployment: str) -> Iterator[None]:
    """Begin the file with the deployment's own line, and end its last line once every node has ended.

    A file that is there already is gone on with. Raises OperatorError before anything is started.
    """
    if path is None:
        yield
        return
    fd = _open(path)
    try:
        line = msgspec.json.encode({"trace": TRACE_FORMAT, "deployment": deployment, "version": __version__})
        try:
            os.write(fd, line if _is_at_line_start(path) else b"\n" + line)
        except OSError as error:
            raise OperatorError(_no_trace(path, error.strerror or str(error))) from error
        yield
        with suppress(OSError):  # Only for the looks of it: a reader takes a file without it.
            os.write(fd, b"\n")
    finally:
        os.close(fd)


@contextmanager
def open_trace(path: Path | None, me: Peer) -> Iterator["NodeTrace | None"]:
    """Hold the trace of a node while the node runs; None where none is wanted.

    A block that is left by an exception leaves no last line. Raises OperatorError.
    """
    if path is None:
        yield None
        return
    trace = NodeTrace(_open(path), me)
    try:
        yield trace
    except BaseException:
        trace.close(in_order=False)
        raise
    trace.close(in_order=True)


class NodeTrace:
    """Writes one node's lines. `watch` and what it returns on the node's thread; owns its descriptor."""

    def __init__(self, fd: int, me: Peer, clock: Callable[[], float] = time.monotonic) -> None:
        self._fd, self._me, self._clock = fd, me, clock
        self._ends_in_order = False
        self._has_failed = False
        self._queue: queue.SimpleQueue[TracedStep | _Last] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def watch(self, core: Traced, role: Role, ledger: PageLedger | None, **facts: Any) -> Observer:
        """Write the first line, with what the core was made with; return what is to be told of each step.

        `ledger` is the core's own, None where it has none; `facts` are shown as they are. Called once.
        """
        lines = TraceLines(self._me, role)
        self._write([lines.start(core, ledger, facts)])
        self._thread = threading.Thread(target=self._run, args=(lines,), name="trace", daemon=True)
        self._thread.start()

        def took(event: Event, commands: Sequence[Command]) -> None:
            if self._has_failed:
                return
            if self._queue.qsize() >= QUEUED_STEPS_MAX:
                self._fail("the file does not keep up with the node")
                return
            self._queue.put(keep_step(core, event, commands, self._clock() * 1000))

        return took

    def close(self, *, in_order: bool) -> None:
        """Write what is queued, and the last line if the node stopped in order. Called once."""
        self._ends_in_order = in_order
        self._queue.put(_Last())
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)
            if self._thread.is_alive():
                self._fail("the file does not take what is left")
                return  # It still writes to its descriptor, which goes with the process.
        os.close(self._fd)

    # ------------------------------------------------------------ the thread
    def _run(self, lines: TraceLines) -> None:
        is_over = False
        while not is_over:
            items = [self._queue.get()]
            while len(items) < WRITE_LINES_MAX and not self._queue.empty():
                items.append(self._queue.get())
            made = [lines.step(item) for item in items if isinstance(item, TracedStep)]
            is_over = isinstance(items[-1], _Last)
            if is_over and self._ends_in_order:
                made.append(lines.end())
            if not self._has_failed:
                self._write(made)

    def _write(self, lines: Sequence[Line]) -> None:
        data = b"".join(b"\n" + msgspec.json.encode(line) for line in lines)
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            self._fail(error.strerror or str(error))

    def _fail(self, why: str) -> None:
        """A trace is for looking into a node; it is no reason to stop one."""
        self._has_failed = True
        log.warning("trace ended", why=why)


def _open(path: Path) -> int:
    """Open for appending, made with mode 0600 if need be."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise OperatorError(_no_trace(path, error.strerror or str(error))) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OperatorError(_no_trace(path, "it is no ordinary file"))
    return fd


def _no_trace(path: Path, why: str) -> str:
    return (
        f"the trace cannot be written to {path}: {why}; name a file in a directory that is there and that "
        "this user may write to, or leave --trace out"
    )


def _is_at_line_start(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
