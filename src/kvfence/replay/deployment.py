"""A deployment of the replay's own: `kvfence serve`, started as an operator would, and taken down again.

Rules it keeps:
- It listens on loopback, on a free port, with a run directory of its own in a temporary directory.
- It ends with the replay, however that ends: closed when the act is over or Ctrl-C comes, and by the kernel
  when the replay is killed.
- What it prints goes to a file, so that nobody has to read along and a failure can show it.

It is started by the thread that lives longest: the kernel ties the launcher's life to that thread.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kvfence.protocol.errors import InternalError, OperatorError
from kvfence.replay.client import LOOPBACK, Client
from kvfence.serving.tokenizer import TextTokenizer

START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 10.0
LOOK_SECONDS = 0.05
USAGE = 2
OUTPUT_LINES_SHOWN = 30

_URL = re.compile(rf"http://{re.escape(LOOPBACK)}:\d+")
_MODEL = re.compile(r"^kvfence \S+  serves (\S+)$", re.MULTILINE)
_STEP = re.compile(r"^([a-z]+(?:-\d+)?): (.+)$")
_COMPLETE = "Ctrl-C drains"  # the last line of the banner


class Say(Protocol):
    """Where the steps of an act are told. A detail is of the present step, and of interest for a moment."""

    def __call__(self, words: str, *, is_detail: bool = False) -> None:
        """Tell a step, or a detail."""


def serve_words(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command as the operator would type it, after `kvfence`."""
    return ("serve", "--host", LOOPBACK, "--port", "0", *flags)


class Deployment:
    """One `kvfence serve` and its run directory."""

    def __init__(self, flags: tuple[str, ...], environment: Mapping[str, str]) -> None:
        """Start it; `wait_ready` comes before everything else."""
        self.flags = flags
        self._home = tempfile.TemporaryDirectory(prefix="kvr-")  # short: sockets live in there
        self._output_path = Path(self._home.name) / "output"
        self._client: Client | None = None
        self._tokenizer: TextTokenizer | None = None
        with self._output_path.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "kvfence.replay.child", str(os.getpid())),
                    *("-m", "kvfence", *serve_words(flags)),
                ],
                env={**environment, "XDG_RUNTIME_DIR": self._home.name},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at the terminal reaches the replay alone
            )

    @property
    def output(self) -> str:
        """Everything it has printed."""
        return self._output_path.read_text(errors="replace")

    @property
    def client(self) -> Client:
        """Whoever asks it. Raises InternalError before it is ready."""
        if self._client is None:
            raise InternalError("a deployment is asked before it is ready: call wait_ready first")
        return self._client

    @property
    def command(self) -> str:
        """What an operator would type for the same."""
        return shlex.join(("kvfence", *serve_words(self.flags)))

    @property
    def run_dir(self) -> Path:
        """The run directory: settings, logs and processes of its nodes."""
        (path,) = [entry for entry in (Path(self._home.name) / "kvfence").iterdir() if entry.is_dir()]
        return path

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the deployment's model makes of a prompt."""
        if self._tokenizer is None:
            settings = json.loads((self.run_dir / "router.json").read_text())
            self._tokenizer = TextTokenizer.from_folder(Path(settings["model_dir"]))
        return len(self._tokenizer.encode(text, add_special_tokens=True))

    def pid(self, node: str) -> int:
        """Return the number of a node's process."""
        number: int = json.loads((self.run_dir / f"{node}.process").read_text())["pid"]
        return number

    def signal(self, node: str, number: signal.Signals) -> None:
        """Send a signal to a node's process, through a descriptor that cannot come to mean another one."""
        fd = os.pidfd_open(self.pid(node))
        try:
            signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)

    def wait_until(self, accept: Callable[[], bool], seconds: float) -> bool:
        """Wait until `accept` says yes; False when the time is over.

        Raises InternalError when the deployment ends meanwhile.
        """
        until = time.monotonic() + seconds
        while not accept():
            if self._ended_within(LOOK_SECONDS):
                raise InternalError(f"the deployment of the replay ended by itself:\n{self._tail()}")
            if time.monotonic() > until:
                return False
        return True

    # ------------------------------------------------------------ start
    def wait_ready(self, say: Say) -> Self:
        """Wait for the whole banner, saying each step. Raises OperatorError when it does not start."""
        until = time.monotonic() + START_SECONDS_MAX
        told = 0
        while True:
            output = self.output
            lines = output.splitlines()[:-1]  # the last one may still grow
            for line in lines[told:]:
                if _STEP.match(line):
                    say(line, is_detail=True)
            told = len(lines)
            if _COMPLETE in output:
                break
            if self._ended_within(LOOK_SECONDS) or time.monotonic() > until:
                raise OperatorError(f"the deployment of the replay did not start; it said:\n{self._tail()}")
        url, model = _URL.search(output), _MODEL.search(output)
        if url is None or model is None:
            raise InternalError(f"the banner names no URL or model:\n{self._tail()}")
        self._client = Client(url.group(0), model.group(1))
        return self

    def wait_refused(self) -> str:
        """Wait for a start that must be refused, and return what it said. Raises InternalError otherwise."""
        try:
            code = self._process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = None
        if code != USAGE:
            raise InternalError(f"a deployment that must not start ended with {code}:\n{self._tail()}")
        return self.output.strip()

    def _tail(self) -> str:
        logs = [path.read_text(errors="replace") for path in Path(self._home.name).glob("kvfence/*/*.log")]
        return "\n".join("\n".join(text.splitlines()[-OUTPUT_LINES_SHOWN:]) for text in (self.output, *logs))

    def _ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    # ------------------------------------------------------------ end
    def begin_stop(self) -> None:
        """Ask it to stop at once; `stop` waits for that."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        """Stop it and remove what it left."""
        self.begin_stop()
        if not self._ended_within(STOP_SECONDS_MAX):
            self._process.kill()  # the kernel ends its nodes with it
            self._process.wait()
        self._home.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
