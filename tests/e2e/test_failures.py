"""Nodes that die or stop while they serve: honest ends, pages that come home, nodes that come back.

The tests share one deployment, and each leaves it whole: that is half of what they are about.
"""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.deployment import runs, wait_until

pytestmark = pytest.mark.e2e

FLAGS = (
    *("--context", "1024", "--pool-tokens", "2048"),
    *("--hello-interval-s", "0.5", "--lost-after-s", "4", "--close-retry-s", "0.5"),
    # A request waits for a node that starts again, however slow the machine is.
    *("--queue-timeout-s", "200", "--tenant-tokens-max", "100000"),
)
RESTART_SECONDS_MAX = 120
QUESTION = "The capital of France is"


@pytest.fixture(scope="module")
def whole(launch):
    return launch(*FLAGS).wait_ready()


@pytest.fixture
def deployment(whole):
    """The deployment with everything at home, before the test and after it."""
    whole.assert_home()
    answer = right_answer(whole)
    yield whole
    whole.assert_home(RESTART_SECONDS_MAX)
    assert right_answer(whole) == answer
    assert whole.metric("kvfence_integrity_failures_total") == 0


def right_answer(deployment) -> str:
    status, body = deployment.complete(QUESTION, 12)
    assert status == 200, body
    text = body["choices"][0]["text"]
    assert "Paris" in text
    return text


def long_prompt(name) -> str:
    """Some 800 tokens that no other prompt begins with."""
    return f"{name} counts: " + " ".join(f"{name}{number}" for number in range(160))


def present(deployment, node) -> bool:
    return node in {entry["name"] for entry in deployment.server_info()["nodes"]}


def wait_back(deployment, node):
    deployment.wait_output(f"{node} is back", RESTART_SECONDS_MAX)


@pytest.fixture
def pool():
    with ThreadPoolExecutor(16) as executor:
        yield executor


def test_prefill_dies_while_it_computes(deployment, pool):
    old = deployment.pid("prefill-0")
    with deployment.stream("Once upon a time", 300, ignore_eos=True, logprobs=0) as running:
        assert running.next_event() is not None
        waiting = [pool.submit(deployment.complete, long_prompt(name), 4, ignore_eos=True) for name in "ABCD"]
        reserved = {"node": "decode-0", "state": "reserved"}
        assert deployment.wait_metric(lambda value: value > 0, "kvfence_leases", **reserved) > 0
        assert deployment.kill("prefill-0") == old
        others = running.read()
    # The row that was decoding needed no prefill node any more.
    assert (others.finish, others.done, len(others.tokens)) == ("length", True, 300)
    answers = [future.result() for future in waiting]
    for status, body in answers:
        if status == 200:
            assert body["usage"]["completion_tokens"] == 4
        else:
            assert (status, body["error"]["code"]) == (503, "peer_lost")
    # Nothing had been streamed: it was computed again, once.
    assert [status for status, _ in answers].count(200) >= 3
    wait_back(deployment, "prefill-0")
    assert deployment.pid("prefill-0") != old


def test_decode_dies_in_mid_stream(deployment, pool):
    old = deployment.pid("decode-0")
    whole_answer = pool.submit(deployment.complete, "Once there was", 900, ignore_eos=True)
    with deployment.stream("Once upon a time", 900, ignore_eos=True, logprobs=0) as stream:
        for _ in range(3):
            assert stream.next_event() is not None
        running = {"node": "decode-0", "state": "running"}
        assert deployment.wait_metric(lambda value: value == 2, "kvfence_leases", **running) == 2
        deployment.kill("decode-0")
        cut_short = stream.read()
    assert cut_short.error is not None
    assert cut_short.error["code"] == "peer_lost"
    assert (cut_short.finish, cut_short.done) == (None, False)
    status, body = whole_answer.result()
    assert (status, body["error"]["code"]) == (503, "peer_lost")
    wait_back(deployment, "decode-0")
    assert deployment.pid("decode-0") != old


def test_the_router_dies_and_comes_back_where_it_was(deployment):
    url, before = deployment.url, deployment.pids()
    with deployment.stream("Once upon a time", 900, ignore_eos=True) as stream:
        assert stream.next_event() is not None
        deployment.kill("router")
        broken = stream.read()
    assert (broken.finish, broken.done) == (None, False)
    wait_back(deployment, "router")
    assert deployment.url == url
    assert deployment.get("/health")
    after = deployment.pids()
    assert after.pop("router") != before.pop("router")
    assert after == before, "the nodes went on"


def test_only_the_death_of_a_stopped_writer_frees_what_it_may_write(deployment, pool):
    """The launcher is stopped too, so that nobody can kill the writer: time alone must free nothing."""
    old = deployment.pid("prefill-0")
    waiting = [pool.submit(deployment.complete, long_prompt(name), 4) for name in "EFGH"]
    reserved = {"node": "decode-0", "state": "reserved"}
    assert deployment.wait_metric(lambda value: value > 0, "kvfence_leases", **reserved) > 0
    deployment.process.send_signal(signal.SIGSTOP)
    deployment.signal("prefill-0", signal.SIGSTOP)
    try:
        quarantined = {"node": "decode-0", "state": "quarantined"}
        held = deployment.wait_metric(lambda value: value > 0, "kvfence_pool_pages", 60, **quarantined)
        assert held > 0
        # Longer than the writer's silence, the close retries and the grace before a kill is asked for.
        age = "kvfence_quarantine_oldest_seconds"
        assert deployment.wait_metric(lambda value: value > 3, age, 60, node="decode-0") > 3
        assert deployment.metric("kvfence_pool_pages", **quarantined) == held
        assert deployment.not_home()
        os.kill(old, 0)  # still there
    finally:
        deployment.process.send_signal(signal.SIGCONT)
    deployment.wait_output("prefill-0 is killed: decode-0 waits for proof that it writes no more")
    assert deployment.wait_metric(lambda value: value == 0, "kvfence_pool_pages", 60, **quarantined) == 0
    assert not runs(old), "pages came home while their writer was alive"
    answers = [future.result() for future in waiting]
    assert {status for status, _ in answers} <= {200, 503}
    assert any(status == 200 for status, _ in answers), answers
    wait_until(lambda: present(deployment, "prefill-0"), RESTART_SECONDS_MAX)


def test_a_stopped_decode_node_is_given_up_and_comes_back(deployment):
    old = deployment.pid("decode-0")
    with deployment.stream("Once upon a time", 900, ignore_eos=True) as stream:
        assert stream.next_event() is not None
        deployment.signal("decode-0", signal.SIGSTOP)
        try:
            given_up = stream.read()
        finally:
            os.kill(old, signal.SIGCONT)
    assert given_up.error is not None
    assert given_up.error["code"] == "peer_lost"
    assert (given_up.finish, given_up.done) == (None, False)
    assert wait_until(lambda: present(deployment, "decode-0"), RESTART_SECONDS_MAX)


def test_a_request_while_no_prefill_node_is_there_is_refused_or_waits(deployment):
    deployment.kill("prefill-0")
    assert wait_until(lambda: not present(deployment, "prefill-0"), 60)
    started = time.monotonic()
    status, body = deployment.complete(QUESTION, 4)
    if status == 503:
        assert body["error"]["code"] == "unavailable"
    else:  # it was back before the request came
        assert status == 200
        assert time.monotonic() - started < RESTART_SECONDS_MAX
    assert wait_until(lambda: present(deployment, "prefill-0"), RESTART_SECONDS_MAX)
