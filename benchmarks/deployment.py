"""`kvfence serve` in processes of its own, timed from the call and watched from outside.

Rules: a run-time directory and a port of its own, so that several may stand on one machine; it is taken
down as an operator would (Ctrl-C), and by force when that takes too long. What it prints goes to a file.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

URL = re.compile(r"http://127\.0\.0\.1:\d+")
START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 40.0
LOOK_SECONDS = 0.01
SHOWN_CHARACTERS = 1500
NODE_FILE = re.compile(r"([\w-]+)\.json$")


class NotServingError(Exception):
    """There is nothing to measure; the words say why."""


class Deployment:
    """One deployment. `started` is the monotonic time of the call, `url` where it answers."""

    def __init__(self, run_home: Path, flags: Sequence[str]) -> None:
        run_home.mkdir(mode=0o700)
        self._output = run_home / "output"
        self.url = ""
        command = [sys.executable, "-m", "kvfence", "serve", "--port", "0", *flags]
        with self._output.open("w") as file:
            self.started = time.monotonic()
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "XDG_RUNTIME_DIR": str(run_home)},
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Wait until the URL is printed. Raises NotServingError when it does not come."""
        until = self.started + START_SECONDS_MAX
        while True:
            found = URL.search(self._output.read_text())
            if found:
                self.url = found.group(0)
                return
            code = self._process.poll()
            if code is not None or time.monotonic() > until:
                told = self._output.read_text()[-SHOWN_CHARACTERS:]
                ended = "was not ready in time" if code is None else f"ended with {code}"
                raise NotServingError(f"kvfence serve {ended}; it printed:\n{told}")
            time.sleep(LOOK_SECONDS)

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time so far of the launcher and of each node, by name."""
        launcher = psutil.Process(self._process.pid)
        found = {"launcher": _cpu_seconds(launcher)}
        for child in launcher.children(recursive=True):
            named = NODE_FILE.search(" ".join(child.cmdline()))
            found[named.group(1) if named else f"process {child.pid}"] = _cpu_seconds(child)
        return found

    def close(self) -> None:
        """Ctrl-C, and force when that is not enough."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
