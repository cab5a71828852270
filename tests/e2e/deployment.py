"""Start a whole deployment, as an operator would, look into it from outside, and take it down again."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.e2e.client import Stream

# A test run that is killed takes its deployments with it: the kernel sees to it, also across the exec.
DIES_WITH_THE_TESTS = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
URL = re.compile(r"http://127\.0\.0\.1:\d+")
SAMPLE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
# Generous: a machine that is busy with something else starts three processes in half a minute.
START_SECONDS_MAX = 180
HOME_SECONDS_MAX = 60
MODEL = "smollm2-135m-instruct"


def wait_until(accept, seconds=60.0):
    """The first true value of `accept()`, or its last one when the time is over."""
    until = time.monotonic() + seconds
    while True:
        value = accept()
        if value or time.monotonic() > until:
            return value
        time.sleep(0.05)


def runs(pid) -> bool:
    """Whether the process is there and has not ended; one that nobody has reaped yet has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Deployment:
    """`kvfence serve` in a process group of its own, with a run-time directory of its own.

    Flags are given as they would be on the command line. `output` is everything it printed.
    """

    def __init__(self, run_home: Path, *flags: str, fault_env=None):
        run_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run_home = run_home
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(run_home), **(fault_env or {})}
        self.command = ["-m", "kvfence", "serve", "--port", "0", *flags]
        self.output = ""
        self.url: str | None = None
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            [sys.executable, "-c", DIES_WITH_THE_TESTS, *self.command],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.output += line
            found = URL.search(line)
            if found and self.url is None:
                self.url = found.group(0)
            if line.startswith("Ctrl-C drains"):  # the banner is complete
                self._ready.set()
        self._ready.set()

    def wait_ready(self, seconds=START_SECONDS_MAX):
        self._ready.wait(seconds)
        if self.url is None:
            self.stop()
            raise AssertionError(f"no URL in {seconds} s:\n{self.output}")
        return self

    def wait_output(self, words, seconds=60):
        """Wait until it has printed this."""
        assert wait_until(lambda: words in self.output, seconds), f"{words!r} is not in:\n{self.output}"

    # ------------------------------------------------------------ its end
    def wait_exit(self, seconds=60) -> int:
        code = self.process.wait(seconds)
        self._reader.join(10)
        return code

    def interrupt(self, seconds=60) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.wait_exit(seconds)

    def stop(self):
        """End it however it stands: with a drain if it still listens to signals, else by force."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                # The nodes are in sessions of their own; the kernel ends them with their parent.
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)
        self._reader.join(10)
        self.process.stdout.close()

    def __enter__(self):
        return self.wait_ready()

    def __exit__(self, *_):
        self.stop()

    # ------------------------------------------------------------ its processes and files
    @property
    def run_dirs(self) -> list[Path]:
        base = self.run_home / "kvfence"
        return sorted(entry for entry in base.iterdir() if entry.is_dir()) if base.is_dir() else []

    @property
    def run_dir(self) -> Path:
        (path,) = self.run_dirs
        return path

    def pid(self, node: str) -> int:
        """The node's present process; it is another one after a restart."""
        return json.loads((self.run_dir / f"{node}.process").read_text())["pid"]

    def pids(self) -> dict[str, int]:
        return {file.stem: self.pid(file.stem) for file in sorted(self.run_dir.glob("*.process"))}

    def signal(self, node: str, number: signal.Signals) -> int:
        pid = self.pid(node)
        os.kill(pid, number)
        return pid

    def kill(self, node: str) -> int:
        """As `kill -9` does; returns the number of the process that is dead now."""
        return self.signal(node, signal.SIGKILL)

    def log(self, node: str) -> str:
        path = self.run_dir / f"{node}.log"
        return path.read_text(errors="replace") if path.is_file() else ""

    def logs(self) -> str:
        """What there is to read when something went wrong."""
        logs = [
            f"----- {file.parent.name}/{file.name}\n{file.read_text(errors='replace')[-4000:]}"
            for run_dir in self.run_dirs
            for file in sorted(run_dir.glob("*.log"))
        ]
        return "\n".join([f"----- {' '.join(self.command[1:])}\n{self.output}", *logs])

    # ------------------------------------------------------------ what it serves
    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return reply.read().decode()

    def header(self, path, name):
        """A header of the answer."""
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return reply.headers.get(name)

    def server_info(self):
        return json.loads(self.get("/server_info"))

    def post(self, path, body, headers=None, timeout=180):
        """(status, parsed body): errors are answers too."""
        request = urllib.request.Request(
            self.url + path,
            data=body if isinstance(body, bytes) else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **(headers or {})},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def complete(self, prompt, max_tokens, *, key=None, timeout=180, **fields):
        """One completion, greedy unless the fields say otherwise: (status, parsed body)."""
        body = {"model": MODEL, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **fields}
        headers = {"Authorization": f"Bearer {key}"} if key else None
        return self.post("/v1/completions", body, headers, timeout)

    def stream(self, prompt, max_tokens, **fields) -> Stream:
        """The same as a stream of events; the caller closes it, when it likes."""
        body = {"model": MODEL, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, **fields}
        return Stream(self.url, {**body, "stream": True})

    # ------------------------------------------------------------ what it shows
    def samples(self):
        """Every sample of `/metrics`: (name, labels, value)."""
        for line in self.get("/metrics").splitlines():
            match = SAMPLE.fullmatch(line)
            if match:
                yield match["name"], dict(LABEL.findall(match["labels"] or "")), float(match["value"])

    def metric(self, name, **labels):
        """Sum of the samples of a metric whose labels include these."""
        return sum(
            value for found, has, value in self.samples() if found == name and labels.items() <= has.items()
        )

    def wait_metric(self, accept, name, seconds=20, **labels):
        """The metric, once `accept` likes it: node figures travel with the hello."""
        until = time.monotonic() + seconds
        while True:
            value = self.metric(name, **labels)
            if accept(value) or time.monotonic() > until:
                return value
            time.sleep(0.1)

    def not_home(self) -> list[str]:
        """Why it cannot be said that every page of every node came home; empty when it can."""
        pages: dict[str, dict[str, float]] = {}
        away = []
        for name, labels, value in self.samples():
            if name == "kvfence_pool_pages":
                pages.setdefault(labels["node"], {})[labels["state"]] = value
            elif name in ("kvfence_leases", "kvfence_queue_length") and value:
                away.append(f"{name} {labels} {value:g}")
        nodes = [node["name"] for node in self.server_info()["nodes"]]
        missing = {file.stem for file in self.run_dir.glob("*.process")} - {"router", *nodes, *pages}
        away += [f"{node} is not there" for node in sorted(missing)]
        for node, states in pages.items():
            # Prefix pages without a pin are free for whoever needs them.
            away += [
                f"{node} has {count:g} pages {state}"
                for state, count in states.items()
                if count and state not in ("free", "cached")
            ]
        return away

    def assert_home(self, seconds=HOME_SECONDS_MAX):
        """Every page is free (or cached), no lease and no request is left, every node is there."""
        until = time.monotonic() + seconds
        while True:
            away = self.not_home()
            if not away:
                return
            assert time.monotonic() < until, "not home: " + "; ".join(away)
            time.sleep(0.2)
