"""vLLM on this machine's CPU, as an operator would start it: one process group, a log, and an end.

It is started with the interpreter of an environment of its own (`make test-vllm` makes it). Ports are drawn
by the kernel, answers are waited for, and a test run that is killed takes its servers with it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from kvfence.engine.loading import DEFAULT_MODEL_ID, resolve_model

# Leads the process group, and ends all of it when the tests, at the other end of its standard input, are gone.
# A handler that does nothing, rather than none: it is not inherited by what is started.
LEADER = """\
import os, signal, subprocess, sys, threading
signal.signal(signal.SIGINT, lambda *_: None)
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def end_with_the_tests():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=end_with_the_tests, daemon=True).start()
sys.exit(server.wait())
"""
START_SECONDS_MAX = 420
END_SECONDS_MAX = 60
ANSWER_SECONDS_MAX = 300
BLOCK_TOKENS = 32
# Quiet, one thread, one GiB of pages, and nothing is asked of the network.
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    # Bound to one core, a server stands still while somebody else has that core.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TOKENIZERS_PARALLELISM": "false",
}


def free_port() -> int:
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Vllm:
    """One server. `flags` are vLLM's own; `key` is what it is asked with."""

    def __init__(self, python: str, home: Path, name: str, *flags: str, key="none", env=None):
        self.key = key
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = home / f"{name}.log"
        command = [python, "-m", "vllm.entrypoints.openai.api_server"]
        command += ["--model", str(resolve_model().path), "--served-model-name", DEFAULT_MODEL_ID]
        command += ["--host", "127.0.0.1", "--port", str(self.port), "--dtype", "bfloat16", "--enforce-eager"]
        command += ["--block-size", str(BLOCK_TOKENS), "--enable-prompt-tokens-details", *flags]
        outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                ["nice", "-n", "5", sys.executable, "-c", LEADER, *command],
                env={**outside, **ENVIRONMENT, **(env or {})},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        """All that it printed."""
        return self.log_file.read_text(errors="replace")

    def wait_ready(self, seconds=START_SECONDS_MAX) -> "Vllm":
        """Until it answers; a server that ended, or does not come, fails the test with its last lines."""
        until = time.monotonic() + seconds
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                raise AssertionError(f"vLLM does not serve:\n{self.log[-6000:]}")
            time.sleep(0.5)
        # The first request for logprobs compiles what counts ranks, and holds up everything for a while.
        status, said = self.complete("Say hello.", max_tokens=2, logprobs=5)
        assert status == 200, said
        return self

    def complete(self, prompt, **fields):
        """One completion: (status, parsed body)."""
        request = urllib.request.Request(
            f"{self.url}/v1/completions",
            json.dumps({"model": DEFAULT_MODEL_ID, "prompt": prompt, **fields}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def metric(self, name: str) -> float:
        """Sum of a metric's samples."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        return sum(
            float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name
        )

    def stop(self) -> None:
        """End it, with its engine process, which is in its process group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):  # then by force
                self.process.wait(END_SECONDS_MAX)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        self.process.stdin.close()
