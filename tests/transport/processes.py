"""Children of a test: started, spoken to, killed, stopped and continued, and never left behind."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.transport.rig import PATIENCE_SECONDS, TARGET_PAGES, WRITER


class Child:
    """A child process that speaks in lines. Leaving the `with` block kills and reaps it."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py")), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
        )
        self.pid = self._process.pid

    @classmethod
    def writer(
        cls, factory: str, address: str, *, incarnation: int = WRITER.incarnation, pages: int = TARGET_PAGES
    ) -> Self:
        """A writer that is connected when this returns."""
        child = cls("writer", factory, address, str(incarnation), str(pages))
        child.expect("connected")
        return child

    @classmethod
    def receiver(
        cls, factory: str, run_dir: Path, *, incarnation: int, pages: int = TARGET_PAGES
    ) -> tuple[Self, str]:
        """A receiver, and its address."""
        child = cls("receiver", factory, str(run_dir), str(incarnation), str(pages))
        return child, child.hear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # a line to a child that was killed before it read it
            self._process.stdin.close()
        self._process.stdout.close()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")

    def hear(self) -> str:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_SECONDS)
        assert ready, "the child says nothing"
        return self._process.stdout.readline().strip()

    def expect(self, line: str) -> None:
        heard = self.hear()
        assert heard == line, f"the child said {heard!r}, not {line!r}"

    def kill(self) -> None:
        """Kill -9 and reap."""
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)

    def stop(self) -> None:
        """SIGSTOP, and return when it has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)
