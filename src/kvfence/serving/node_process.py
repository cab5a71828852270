"""One run of one node's process, as the launcher sees it: its pipe, its descriptor, what it has said.

    start ─▶ (started ─▶ progress … ─▶ ready) ─▶ … ─▶ ended, reaped

Rules it keeps:
- The process is in a session of its own, so that a Ctrl-C at the terminal reaches the launcher alone.
- It inherits the write end of its status pipe and nothing else; what it prints goes to its log file.
- Signals go through its process descriptor: never to a number that another process may have by now.
- It is reaped exactly once, here. An incarnation that was reaped runs no more.

It decides nothing: when to start, kill or restart is the supervisor's.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kvfence.protocol.errors import PeerError
from kvfence.serving.node_config import NodeConfig, encode_node_config
from kvfence.serving.progress import Failed, NodeStatus, Ready, Started, StatusReader
from kvfence.serving.rundir import RunDir

NodeCommand = Callable[[Path], list[str]]


def node_command(config_path: Path) -> list[str]:
    """Return the command of a real node; tests put a small program in its place."""
    return [sys.executable, "-m", "kvfence.serving.node_main", str(config_path)]


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """How a node is started, every time: its settings, and variables beside the launcher's own."""

    config: NodeConfig
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.config.node


class NodeProcess:
    """A running process. Owns its pipe's read end and its descriptor until `close`."""

    def __init__(self, spec: NodeSpec, process: subprocess.Popen[bytes], status_fd: int) -> None:
        """Use `start`."""
        self.spec = spec
        self.incarnation: int | None = None
        self.ready: Ready | None = None
        self.failed: Failed | None = None
        self.started_at = time.monotonic()
        self.ready_at: float | None = None
        self._process = process
        self._status = StatusReader(status_fd)
        self._pidfd = os.pidfd_open(process.pid)

    @classmethod
    def start(
        cls, spec: NodeSpec, run_dir: RunDir, environment: Mapping[str, str], command: NodeCommand
    ) -> "NodeProcess":
        """Write the settings, start the process, remember it in the run directory."""
        read_end, write_end = os.pipe()
        settings = msgspec.structs.replace(spec.config, status_fd=write_end, parent_pid=os.getpid())
        path = run_dir.config_path(spec.name)
        run_dir.write(path, encode_node_config(settings))
        log_fd = os.open(
            run_dir.log_path(spec.name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            process = subprocess.Popen(
                command(path),
                stdin=subprocess.DEVNULL,
                stdout=log_fd,
                stderr=log_fd,
                env={**environment, **spec.environment},
                pass_fds=(write_end,),
                start_new_session=True,
            )
        finally:
            os.close(log_fd)
            os.close(write_end)
        run_dir.record(spec.name, process.pid)
        return cls(spec, process, read_end)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.spec.name

    @property
    def pid(self) -> int:
        """The process's number, to show."""
        return self._process.pid

    @property
    def status_fd(self) -> int:
        """Readable when the node has said something, or its pipe has ended."""
        return self._status.fileno()

    @property
    def end_fd(self) -> int:
        """Readable when the process has ended."""
        return self._pidfd

    @property
    def pipe_ended(self) -> bool:
        """Whether nothing more will come through the pipe."""
        return self._status.ended

    def read(self) -> Iterator[NodeStatus]:
        """Yield what the node said, and remember what matters later. A broken line ends the process."""
        try:
            for status in self._status.read():
                self._remember(status)
                yield status
        except PeerError as error:
            self.failed = Failed(message=str(error), exit_code=3)
            self.signal(signal.SIGKILL)

    def _remember(self, status: NodeStatus) -> None:
        match status:
            case Started(incarnation=incarnation):
                self.incarnation = incarnation
            case Ready(incarnation=incarnation):
                self.incarnation, self.ready, self.ready_at = incarnation, status, time.monotonic()
            case Failed():
                self.failed = status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that has ended is not reached, which is no fault."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def reap(self) -> int | None:
        """Return the exit status (negative: by that signal) if the process has ended, else None."""
        return self._process.poll()

    def close(self) -> None:
        """Let go of the pipe and the descriptor. The process was reaped before."""
        self._status.close()
        os.close(self._pidfd)
