"""The launcher with fake nodes: start, crash, kill on request, drain, being killed itself."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from tests.serving.fake_deployment import FakeDeployment, gone


@pytest.fixture
def runtime():
    """A short path: pytest's own are too long for the addresses of sockets."""
    with tempfile.TemporaryDirectory(prefix="kvf") as path:
        yield Path(path)


@pytest.fixture
def start(runtime):
    started = []

    def begin(**settings):
        started.append(FakeDeployment(runtime, **settings))
        return started[-1]

    yield begin
    for deployment in started:
        deployment.close()


def left(deployment) -> list[str]:
    return sorted(entry.name for entry in deployment.base.iterdir())


def test_it_starts_shows_the_banner_and_leaves_nothing(start):
    deployment = start(prefill=1, decode=1, port=0).wait_ready()
    for words in (
        "prefill-0: loading the model (1 of 2)",
        "decode-0: ready",
        "http://127.0.0.1:4321",
        "largest request 128 tokens",
        "fence  sealed",
        "curl -s http://127.0.0.1:4321/v1/chat/completions",
        "decode-0: event='it is warm'",
    ):
        deployment.wait_for(words)
    assert "all is well" not in deployment.output, "what is no warning stays in the log"
    assert "UNSAFE" not in deployment.output
    pids = deployment.pids()
    assert len(pids) == 3
    deployment.interrupt()
    assert deployment.wait_exit() == 0
    assert "draining" in deployment.output
    assert all(gone(pid) for pid in pids)
    assert left(deployment) == [".lock"]


def test_sigterm_drains_too(start):
    deployment = start().wait_ready()
    deployment.process.terminate()
    assert deployment.wait_exit() == 0
    assert left(deployment) == [".lock"]


def test_a_second_interrupt_stops_at_once(start):
    deployment = start(nodes={"router": ["stubborn"]}, drain_timeout_s=600).wait_ready()
    pids = deployment.pids()
    deployment.interrupt()
    deployment.wait_for("draining")
    deployment.interrupt()
    assert deployment.wait_exit() == 130
    assert all(gone(pid) for pid in pids)
    assert left(deployment) == [".lock"]


def test_a_router_that_does_not_end_is_killed_after_the_drain_timeout(start):
    deployment = start(nodes={"router": ["stubborn"]}, drain_timeout_s=0).wait_ready()
    deployment.interrupt()
    assert deployment.wait_exit() == 0
    assert "router did not end within 2 s and is killed" in deployment.output


def test_an_interrupt_while_it_starts_stops_it(start):
    deployment = start(nodes={"decode-0": ["mute"]}).wait_for("prefill-0: ready")
    pids = deployment.pids()
    deployment.interrupt()
    assert deployment.wait_exit() == 130
    assert all(gone(pid) for pid in pids)
    assert left(deployment) == [".lock"]


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("refuses", 2, "decode-0 cannot start: no room for the pool; free some memory"),
        ("crashes", 3, "Traceback: it broke"),
        ("babbles", 3, "status line that cannot be read"),
    ],
)
def test_a_node_that_ends_while_starting_ends_the_start(start, word, code, said):
    deployment = start(nodes={"decode-0": [word], "router": ["mute"]})
    assert deployment.wait_exit() == code
    assert said in deployment.output
    assert left(deployment) == [".lock"]


def test_a_start_has_a_bound(start):
    deployment = start(nodes={"decode-0": ["mute"]}, start_timeout_s=1)
    assert deployment.wait_exit() == 2
    assert "decode-0 did not become ready within 1 s" in deployment.output


def test_law_6_speaks_before_anything_starts(start):
    deployment = start(decode_pool_tokens=100)
    assert deployment.wait_exit() == 2
    assert "the context of 128 tokens is larger than the decode-0 pool of 100 tokens" in deployment.output
    assert "--pool-tokens" in deployment.output
    assert "--context fit" in deployment.output
    assert "starting" not in deployment.output


def test_law_6_speaks_on_what_the_running_nodes_have(start):
    deployment = start(nodes={"prefill-0": ["small"]})
    assert deployment.wait_exit() == 2
    assert "128 tokens is larger than the prefill-0 pool of 16 tokens" in deployment.output


def test_a_context_may_be_lowered_to_fit(start):
    deployment = start(nodes={"prefill-0": ["small"]}, context="fit").wait_ready()
    assert "largest request 16 tokens" in deployment.output


def test_an_unsafe_deployment_says_so(start):
    start(fence="off", i_understand_this_leaks_data=True).wait_for("The fence is off.").wait_for("UNSAFE")


def test_a_node_that_crashes_is_started_again(start):
    deployment = start().wait_ready()
    before = deployment.pid("prefill-0")
    os.kill(before, signal.SIGUSR1)
    deployment.wait_for("prefill-0 ended with exit code 7; it is started again in 0.5 s")
    deployment.wait_for("Traceback: it broke")
    deployment.wait_for("prefill-0 is back")
    assert deployment.pid("prefill-0") != before
    deployment.interrupt()
    assert deployment.wait_exit() == 0


def test_a_router_that_is_started_again_keeps_its_port(start):
    deployment = start(port=0).wait_ready()
    os.kill(deployment.pid("router"), signal.SIGKILL)
    deployment.wait_for("router was ended by SIGKILL").wait_for("router is back")
    assert '"port": 4321' in (deployment.run_dir / "router.json").read_text()


def test_decode_has_a_writer_killed(start):
    deployment = start().wait_ready()
    before = deployment.pid("prefill-0")
    os.kill(before, signal.SIGSTOP)
    os.kill(deployment.pid("decode-0"), signal.SIGUSR2)
    deployment.wait_for("prefill-0 is killed: decode-0 waits for proof")
    deployment.wait_for("prefill-0 was ended by SIGKILL; it is started again").wait_for("prefill-0 is back")
    assert gone(before)


def test_another_incarnation_is_not_killed(start):
    deployment = start(off_by=1).wait_ready()
    before = deployment.pid("prefill-0")
    os.kill(deployment.pid("decode-0"), signal.SIGUSR2)
    deployment.wait_for("asked for an end")
    os.kill(deployment.pid("decode-0"), signal.SIGUSR1)  # once its end is seen, its words were read
    deployment.wait_for("decode-0 is back")
    assert deployment.pid("prefill-0") == before
    assert "is killed" not in deployment.output


def test_a_launcher_that_is_killed_is_swept_by_the_next(start):
    first = start().wait_ready()
    pids, dead = first.pids(), first.run_dir
    first.process.kill()
    first.process.wait()
    assert dead.exists(), "nobody tidied up after kill -9"
    second = start().wait_ready()
    second.wait_for(f"swept what was left of deployment {dead.name} (3 processes)")
    assert all(gone(pid) for pid in pids)
    assert not dead.exists()
    second.interrupt()
    assert second.wait_exit() == 0
    assert left(second) == [".lock"]


def test_two_deployments_leave_each_other_alone(start):
    first = start().wait_ready()
    mine = first.run_dir
    second = start().wait_ready()
    assert "swept" not in second.output
    second.interrupt()
    assert second.wait_exit() == 0
    assert mine.exists()
    first.interrupt()
    assert first.wait_exit() == 0
