"""Keeps the nodes of a deployment running: starts, watches, restarts and kills their processes.

Rules it keeps:
- One thread, one selector: it sleeps until a pipe, a death, a signal or a due restart wakes it.
- A node that died is started again after a back-off that doubles up to a bound, and starts anew once the
  node was healthy for a minute. There is no bound on the number of restarts: the pages of the others are
  safe without the node, and an operator who mends the cause should not have to do more.
- A kill request names an incarnation. It reaches the process that said it is that incarnation, and no
  other: one that was reaped runs no more, and a later one is none of the requester's business.
- The next process of a node starts only after the one before was reaped.

It knows no protocol and shows nothing: whoever calls `poll` gets the events.
"""

import selectors
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvfence.protocol.errors import InternalError, invariant
from kvfence.serving.node_process import NodeProcess, NodeSpec
from kvfence.serving.progress import Failed, Kill, NodeStatus

BACKOFF_FIRST_S = 0.5
BACKOFF_LONGEST_S = 30.0
HEALTHY_S = 60.0
CLOSE_PATIENCE_S = 10.0


class StuckProcessesError(InternalError):
    """Processes that were killed do not end."""


class Backoff:
    """How long to wait before a node is started again."""

    def __init__(self) -> None:
        """Start with the shortest wait."""
        self._next_s = BACKOFF_FIRST_S

    def wait_s(self, healthy_s: float) -> float:
        """Seconds to wait after a run that was ready for `healthy_s` seconds."""
        if healthy_s >= HEALTHY_S:
            self._next_s = BACKOFF_FIRST_S
        wait_s = self._next_s
        self._next_s = min(2 * wait_s, BACKOFF_LONGEST_S)
        return wait_s


@dataclass(frozen=True, slots=True)
class NodeSaid:
    """A node wrote a status line."""

    node: str
    status: NodeStatus


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """A node's process ended and was reaped. `restart_s`: it is started again then; None: it is not."""

    node: str
    exit_status: int
    failed: Failed | None
    was_asked_to_die: bool
    restart_s: float | None


@dataclass(frozen=True, slots=True)
class NodeRestarted:
    """A node that had died was started again."""

    node: str


SupervisorEvent = NodeSaid | NodeEnded | NodeRestarted
Start = Callable[[NodeSpec], NodeProcess]


class Supervisor:
    """The processes of one deployment. `restarts` says whether the dead are started again."""

    def __init__(self, start: Start, clock: Callable[[], float] = time.monotonic) -> None:
        """Start nodes by `start`; nothing runs yet, and nothing is restarted until `restarts` is set."""
        self.restarts = False
        self._start, self._clock = start, clock
        self._specs: dict[str, NodeSpec] = {}
        self._running: dict[str, NodeProcess] = {}
        self._due: dict[str, float] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._asked_to_die: set[str] = set()
        self._selector = selectors.DefaultSelector()

    # ------------------------------------------------------------ what runs
    @property
    def running(self) -> tuple[str, ...]:
        """Nodes whose process has not been reaped."""
        return tuple(self._running)

    def process(self, node: str) -> NodeProcess | None:
        """Return a node's present process."""
        return self._running.get(node)

    def all_ready(self, nodes: Iterable[str]) -> bool:
        """Whether every one of these nodes runs and has said that it is ready."""
        processes = [self._running.get(node) for node in nodes]
        return all(process is not None and process.ready is not None for process in processes)

    # ------------------------------------------------------------ what to do
    def watch(self, fd: int) -> None:
        """Wake up from `poll` when this descriptor is readable; its owner reads it."""
        self._selector.register(fd, selectors.EVENT_READ, None)

    def start(self, spec: NodeSpec) -> None:
        """Start a node."""
        invariant(spec.name not in self._running, "a node's process starts after the one before was reaped")
        self._specs[spec.name] = spec
        self._due.pop(spec.name, None)
        process = self._start(spec)
        self._running[spec.name] = process
        self._selector.register(process.status_fd, selectors.EVENT_READ, process)
        self._selector.register(process.end_fd, selectors.EVENT_READ, process)

    def update(self, spec: NodeSpec) -> None:
        """Start the node by this from its next restart on."""
        invariant(spec.name in self._specs, "only a node that was started has a specification")
        self._specs[spec.name] = spec

    def kill(self, request: Kill) -> bool:
        """Kill the incarnation that was named; False when no process of ours is that incarnation."""
        process = self._running.get(request.node)
        if process is None or process.incarnation != request.incarnation:
            return False
        self._asked_to_die.add(request.node)
        process.signal(signal.SIGKILL)
        return True

    def signal(self, nodes: Iterable[str], number: signal.Signals) -> None:
        """Send a signal to those of the nodes that run."""
        for node in nodes:
            if node in self._running:
                self._running[node].signal(number)

    def close(self) -> None:
        """Kill and reap what still runs. Raises StuckProcessesError for what hangs in the kernel."""
        self.restarts = False
        self.signal(self.running, signal.SIGKILL)
        until = self._clock() + CLOSE_PATIENCE_S
        while self._running:
            self.poll(max(0.0, until - self._clock()))
            if self._running and self._clock() >= until:
                pids = [process.pid for process in self._running.values()]
                raise StuckProcessesError(
                    f"processes {pids} do not end when killed: they hang in the kernel; look there, and start"
                    " kvfence again later, which ends them first"
                )
        self._selector.close()

    # ------------------------------------------------------------ what happened
    def poll(self, timeout_s: float | None) -> list[SupervisorEvent]:
        """Wait for something to happen, at most so long (None: until it does), and say what it was."""
        events: list[SupervisorEvent] = []
        touched = {}
        for key, _ in self._selector.select(self._until_due(timeout_s)):
            if isinstance(key.data, NodeProcess):
                touched[key.data.name] = key.data
        for process in touched.values():
            events += [NodeSaid(process.name, status) for status in process.read()]
            if process.pipe_ended:
                self._forget(process.status_fd)
            exit_status = process.reap()
            if exit_status is not None:
                # The pipe is read to its end first: the last words say why.
                events += [NodeSaid(process.name, status) for status in process.read()]
                events.append(self._ended(process, exit_status))
        return events + self._restart_due()

    def _until_due(self, timeout_s: float | None) -> float | None:
        if not self._due:
            return timeout_s
        until_s = max(0.0, min(self._due.values()) - self._clock())
        return until_s if timeout_s is None else min(until_s, timeout_s)

    def _forget(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def _ended(self, process: NodeProcess, exit_status: int) -> NodeEnded:
        node = process.name
        self._forget(process.status_fd)
        self._forget(process.end_fd)
        process.close()
        del self._running[node]
        restart_s = None
        if self.restarts:
            healthy_s = 0.0 if process.ready_at is None else self._clock() - process.ready_at
            restart_s = self._backoffs.setdefault(node, Backoff()).wait_s(healthy_s)
            self._due[node] = self._clock() + restart_s
        asked = node in self._asked_to_die
        self._asked_to_die.discard(node)
        return NodeEnded(node, exit_status, process.failed, asked, restart_s)

    def _restart_due(self) -> list[SupervisorEvent]:
        if not self.restarts:
            self._due.clear()
        now = self._clock()
        due = [node for node, at in self._due.items() if at <= now]
        for node in due:
            self.start(self._specs[node])
        return [NodeRestarted(node) for node in due]
