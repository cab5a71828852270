"""One deployment from its banner to its last process, and what is left when it dies instead.

The tests of the module stand in the order of a deployment's life: the last ones end it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kvfence.protocol.words import IntegrityReason
from kvfence.serving.placement import usable_cpus
from tests.e2e.deployment import MODEL, runs, wait_until

pytestmark = pytest.mark.e2e

CONTEXT_TOKENS, POOL_TOKENS = 2048, 2560
FLAGS = ("--context", str(CONTEXT_TOKENS), "--pool-tokens", str(POOL_TOKENS), "--drain-timeout-s", "120")
NODES = ["decode-0", "prefill-0", "router"]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def served(launch):
    return launch(*FLAGS).wait_ready()


# ------------------------------------------------------------ what the machine has of it


def memory_files(pid) -> set[str]:
    """Inodes of the shared memory that a process maps: pools live in memfds."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return {line.split()[4] for line in maps.splitlines() if "/memfd:" in line}


def mapped_anywhere(inodes) -> set[str]:
    """Which of these are mapped by any process of the machine."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found |= memory_files(entry.name) & inodes
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return found


class Remains:
    """What a living deployment has, to look for when it is gone."""

    def __init__(self, deployment):
        self.pids = [deployment.process.pid, *deployment.pids().values()]
        self.memory = set().union(*(memory_files(pid) for pid in deployment.pids().values()))
        self.shared_before = set(Path("/dev/shm").iterdir())
        assert self.memory, "the pools are in memfds"

    def assert_no_process(self):
        assert wait_until(lambda: not any(map(runs, self.pids)), 30), [p for p in self.pids if runs(p)]
        assert wait_until(lambda: not mapped_anywhere(self.memory), 10), "a pool is still mapped"
        new = set(Path("/dev/shm").iterdir()) - self.shared_before
        assert [path for path in new if "kvf" in path.name] == []


# ------------------------------------------------------------ while it serves


def test_the_banner_is_complete(served):
    lines = served.output.splitlines()
    columns = {line.split()[0]: line.split() for line in lines if line.strip()}
    for node in ("prefill-0", "decode-0"):
        assert columns[node][1:4] == ["2,560", "2,048", "1.25"]
    assert "router" in columns
    assert columns["fence"] == ["fence", "sealed"]
    assert columns["transport"] == ["transport", "shm"]
    assert columns["URL"] == ["URL", served.url]
    assert columns["logs"] == ["logs", str(served.run_dir)]
    assert "context  2,048 tokens; largest request 2,048 tokens" in served.output
    assert "UNSAFE" not in served.output


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_line_of_the_banner_gives_an_answer(served):
    (line,) = [line.strip() for line in served.output.splitlines() if line.strip().startswith("try ")]
    done = subprocess.run(
        ["bash", "-c", line.removeprefix("try").strip()], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert "Paris" in answer["choices"][0]["message"]["content"]
    assert answer["usage"]["completion_tokens"] > 0


def test_models_and_health_tell_the_limit_that_holds(served):
    (card,) = json.loads(served.get("/v1/models"))["data"]
    assert (card["id"], card["max_model_len"]) == (MODEL, CONTEXT_TOKENS)
    assert json.loads(served.get("/health")) == {"status": "ok"}


def test_server_info_names_every_node(served):
    info = served.server_info()
    assert info["largest_request_tokens"] == CONTEXT_TOKENS
    assert (info["fence"], info["transport"], info["unsafe_faults"]) == ("sealed", "shm", [])
    assert info["version"]
    nodes = {node["name"]: node for node in info["nodes"]}
    assert sorted(nodes) == ["decode-0", "prefill-0"]
    for name, node in nodes.items():
        assert node["role"] == name.partition("-")[0]
        assert node["pool_tokens"] == POOL_TOKENS
        assert node["largest_request_tokens"] == node["context_tokens"] == CONTEXT_TOKENS
        assert (node["page_tokens"], node["fence"], node["version"]) == (16, "sealed", info["version"])
        assert node["page_bytes"] % 64 == 0
        assert node["pool_bytes"] >= POOL_TOKENS // 16 * node["page_bytes"]


def test_metrics_have_every_figure(served):
    status, _ = served.complete("The capital of France is", 4)
    assert status == 200
    served.assert_home()
    # What a node counts is as old as its last hello.
    for name in ("seals_verified", "transfer_bytes", "transfer_seconds"):
        assert served.wait_metric(lambda value: value > 0, f"kvfence_{name}_total") > 0
    samples = {}
    for name, labels, value in served.samples():
        samples.setdefault(name, []).append((labels, value))

    def labels_of(name, label):
        return {labels[label] for labels, _ in samples[name]}

    assert {"free", "leased", "sealed", "quarantined"} <= labels_of("kvfence_pool_pages", "state")
    assert labels_of("kvfence_pool_pages", "node") == {"prefill-0", "decode-0"}
    assert labels_of("kvfence_leases", "node") == {"prefill-0", "decode-0"}
    assert {"admission", "prompts", "decode_rows"} <= labels_of("kvfence_queue_length", "queue")
    # Seen before the first of them happens: an alarm needs a zero to rise from.
    reasons = labels_of("kvfence_integrity_failures_total", "reason")
    assert reasons == {reason.value for reason in IntegrityReason}
    assert {"context_length_exceeded", "busy"} <= labels_of("kvfence_refusals_total", "reason")
    assert sum(value for _, value in samples["kvfence_integrity_failures_total"]) == 0
    for name in ("kvfence_ttft_seconds", "kvfence_tpot_seconds"):
        assert samples[f"{name}_count"][0][1] > 0
        assert len(samples[f"{name}_bucket"]) > 5


def test_threads_are_cores_by_nodes_and_pinned(served):
    cpus = usable_cpus()
    nodes = {node["name"]: node for node in served.server_info()["nodes"]}
    pinned = {}
    for name in ("prefill-0", "decode-0"):
        pid = served.pid(name)
        environment = Path(f"/proc/{pid}/environ").read_text()
        assert f"OMP_NUM_THREADS={nodes[name]['threads']}" in environment.split("\0")
        allowed = {cpus_allowed(status) for status in Path(f"/proc/{pid}/task").glob("*/status")}
        assert len(allowed) == 1, "a thread of the node runs where the others do not"
        pinned[name] = allowed.pop()
    threads = sum(node["threads"] for node in nodes.values())
    if len(cpus) == 1:
        assert threads == 2
        return
    assert threads <= len(cpus)
    assert {node["threads"] for node in nodes.values()} <= {len(cpus) // 2, len(cpus) // 2 + 1}
    assert not set(pinned["prefill-0"]) & set(pinned["decode-0"])
    for name, allowed in pinned.items():
        assert len(allowed) == nodes[name]["threads"]
        assert ",".join(map(str, allowed)) == nodes[name]["cpus"]


def cpus_allowed(status: Path) -> tuple[int, ...]:
    (words,) = re.findall(r"^Cpus_allowed_list:\s*(\S+)$", status.read_text(), re.MULTILINE)
    cpus = []
    for part in words.split(","):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)


def test_a_deployment_without_work_uses_next_to_no_processor(served):
    served.assert_home()
    pids = [served.process.pid, *served.pids().values()]
    before = {pid: cpu_seconds(pid) for pid in pids}
    started = time.monotonic()
    time.sleep(4)  # the one thing here that is about time passing
    share = {pid: (cpu_seconds(pid) - before[pid]) / (time.monotonic() - started) for pid in pids}
    assert max(share.values()) < 0.02, share


def cpu_seconds(pid) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


# ------------------------------------------------------------ how it ends


def test_ctrl_c_drains_and_leaves_nothing_behind(served):
    remains = Remains(served)
    with served.stream("Once upon a time", 250, ignore_eos=True, logprobs=0) as stream:
        assert stream.next_event() is not None
        served.process.send_signal(signal.SIGINT)
        served.wait_output("draining: requests in flight are finished")

        def refusal():
            status, body = served.complete("too late", 1)
            return (status, body["error"]["code"]) if status != 200 else None

        assert wait_until(refusal, 30) == (503, "draining")
        answer = stream.read()
    assert (answer.finish, answer.done, answer.error) == ("length", True, None)
    assert len(answer.tokens) == 250
    assert served.wait_exit() == 0
    assert served.output.splitlines()[-1] == "stopped"
    remains.assert_no_process()
    assert served.run_dirs == []


def test_kill_9_of_the_launcher_ends_everything_and_the_next_start_sweeps(launch, tmp_path_factory):
    home = tmp_path_factory.mktemp("k")
    first = launch(*FLAGS, run_home=home).wait_ready()
    dead_dir, remains = first.run_dir, Remains(first)
    with first.stream("Once upon a time", 1250, ignore_eos=True) as stream:
        assert stream.next_event() is not None
        first.process.kill()
        remains.assert_no_process()
        answer = stream.read()
        assert (answer.done, answer.finish) == (False, None), "no client takes that for a whole answer"
    first.wait_exit()
    assert dead_dir.is_dir(), "nobody was left to remove it"

    second = launch(*FLAGS, run_home=home).wait_ready()
    assert f"swept what was left of deployment {dead_dir.name}" in second.output
    assert not dead_dir.exists()
    assert second.complete("The capital of France is", 4)[0] == 200
    stop_at_once(second)


def stop_at_once(deployment):
    """The second Ctrl-C does not wait for the request in flight, and is as thorough."""
    remains = Remains(deployment)
    with deployment.stream("Once upon a time", 1900, ignore_eos=True) as stream:
        assert stream.next_event() is not None
        deployment.process.send_signal(signal.SIGINT)
        deployment.wait_output("draining")
        assert deployment.interrupt() == 130
    remains.assert_no_process()
    assert deployment.run_dirs == []
