"""Start a whole deployment, as an operator would, and take it down again."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

URL = re.compile(r"http://127\.0\.0\.1:\d+")
START_SECONDS_MAX = 180


class Deployment:
    """`kvfence serve` in a process group of its own, with a run-time directory of its own.

    Flags are given as they would be on the command line. `output` is everything it printed.
    """

    def __init__(self, run_home: Path, *flags: str, fault_env=None):
        run_home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run_home = run_home
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(run_home), **(fault_env or {})}
        self.command = [sys.executable, "-m", "kvfence", "serve", "--port", "0", *flags]
        self.output = ""
        self.url: str | None = None
        self._ready = threading.Event()
        self.process = subprocess.Popen(
            self.command,
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
                self._ready.set()
        self._ready.set()

    def wait_ready(self, seconds=START_SECONDS_MAX):
        self._ready.wait(seconds)
        if self.url is None:
            self.stop()
            raise AssertionError(f"no URL in {seconds} s:\n{self.output}")
        return self

    def wait_exit(self, seconds=60) -> int:
        code = self.process.wait(seconds)
        self._reader.join(10)
        return code

    def interrupt(self, seconds=60) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.wait_exit(seconds)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)
        self._reader.join(10)

    def __enter__(self):
        return self.wait_ready()

    def __exit__(self, *_):
        self.stop()

    # ------------------------------------------------------------ what it serves
    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return reply.read().decode()

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
            return error.code, json.loads(error.read())

    def metric(self, name, **labels):
        """Sum of the samples of a metric whose labels include these."""
        total = 0.0
        for line in self.get("/metrics").splitlines():
            match = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
            if match and all(f'{key}="{value}"' in (match[1] or "") for key, value in labels.items()):
                total += float(match[2])
        return total

    def wait_metric(self, accept, name, seconds=20, **labels):
        """The metric, once `accept` likes it: node figures travel with the hello."""
        until = time.monotonic() + seconds
        while True:
            value = self.metric(name, **labels)
            if accept(value) or time.monotonic() > until:
                return value
            time.sleep(0.1)
