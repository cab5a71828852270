"""`kvfence serve` with fake nodes: the launcher as a process of its own, as an operator has it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from kvfence.serving.rundir import sweep

SECONDS_MAX = 20


@dataclass(frozen=True)
class FakeModel:
    path: Path = Path("model")
    model_id: str = "fake-model"
    config: dict = field(default_factory=lambda: {"max_position_embeddings": 128})
    chat_template: str | None = "{{ messages }}"


def fake_command(path):
    return [sys.executable, "-S", "-E", str(Path(__file__).with_name("fake_node.py")), str(path)]


class FakeDeployment:
    """Starts at once; `wait_for` words in its output. The base of run directories is `base`."""

    def __init__(self, runtime: Path, *, nodes=None, off_by=0, **settings):
        self.base = runtime / "kvfence"
        environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": str(runtime),
            "FAKE_NODES": json.dumps(nodes or {}),
            "FAKE_OFF_BY": str(off_by),
        }
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(settings)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._changed:
                self.output += line
                self._changed.notify_all()

    def wait_for(self, words: str, times: int = 1):
        with self._changed:
            seen = self._changed.wait_for(lambda: self.output.count(words) >= times, SECONDS_MAX)
        assert seen, f"{words!r} is not in:\n{self.output}"
        return self

    def wait_ready(self):
        return self.wait_for("Ctrl-C drains")

    def wait_exit(self) -> int:
        code = self.process.wait(SECONDS_MAX)
        self._reader.join(SECONDS_MAX)
        return code

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    @property
    def run_dir(self) -> Path:
        (path,) = [entry for entry in self.base.iterdir() if entry.is_dir()]
        return path

    def pid(self, node: str) -> int:
        return json.loads((self.run_dir / f"{node}.process").read_bytes())["pid"]

    def pids(self) -> list[int]:
        return [json.loads(file.read_bytes())["pid"] for file in self.run_dir.glob("*.process")]

    def close(self):
        """End it the hard way, and its nodes, which do not die with their launcher as real ones do."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.base.is_dir():
            sweep(self.base)
        self._reader.join(SECONDS_MAX)
        self.process.stdout.close()


def gone(pid: int) -> bool:
    """Whether a process that is no child of ours ends within the patience."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def main():
    import typer
    from rich.console import Console

    from kvfence.cli.endings import ending_well
    from kvfence.serving.config import load_config
    from kvfence.serving.launcher import Surroundings, serve
    from kvfence.serving.plan import Machine

    def run():
        settings = load_config(json.loads(sys.argv[1]))
        around = Surroundings(
            environment=os.environ,
            output=Console(highlight=False, width=100),
            errors=Console(stderr=True, highlight=False, width=100),
            machine=Machine((0, 1), 16 << 30),
            command=fake_command,
        )
        return serve(settings, FakeModel(), around)

    try:
        ending_well(run)()
    except typer.Exit as ending:
        sys.exit(ending.exit_code)


if __name__ == "__main__":
    main()
