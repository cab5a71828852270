"""Clients that leave: in every phase of a request, one by one and in a storm. All pages come home."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.e2e

FLAGS = (
    *("--context", "512", "--pool-tokens", "768", "--batch-size", "8"),
    *("--queue-timeout-s", "120", "--tenant-tokens-max", "100000"),
)
STORM_AT_ONCE = 12
STORM_SEED = 20260827


@pytest.fixture(scope="module")
def whole(launch):
    return launch(*FLAGS).wait_ready()


@pytest.fixture
def deployment(whole):
    """The deployment before and after: everything at home, and the same answer to the same question."""
    whole.assert_home()
    before = answer_of(whole)
    yield whole
    whole.assert_home()
    assert answer_of(whole) == before
    assert whole.metric("kvfence_integrity_failures_total") == 0
    assert whole.metric("kvfence_uncut_pages") == 0


def answer_of(deployment) -> dict:
    """Text and logprobs: equal to the last digit while one request at a time has the same shapes."""
    status, body = deployment.complete("The capital of France is", 24, logprobs=3)
    assert status == 200, body
    (choice,) = body["choices"]
    assert "Paris" in choice["text"]
    return choice


def long_prompt(name) -> str:
    """Some 450 tokens that no other prompt begins with."""
    return f"{name} counts: " + " ".join(f"{name}{number}" for number in range(90))


def gone(deployment) -> float:
    return deployment.metric("kvfence_requests_total", reason="client_gone")


def test_leaving_while_the_answer_streams(deployment):
    before = gone(deployment)
    for events in (1, 2, 7):
        with deployment.stream("Once upon a time", 400, ignore_eos=True) as stream:
            for _ in range(events):
                assert stream.next_event() is not None
    assert deployment.wait_metric(
        lambda value: value == before + 3, "kvfence_requests_total", reason="client_gone"
    ) == (before + 3)


def test_leaving_while_the_prompt_is_computed(deployment):
    before = gone(deployment)
    state = {"node": "decode-0", "state": "reserved"}
    streams = [deployment.stream(long_prompt(name), 8) for name in "ABCD"]
    try:
        # Its pages are reserved on decode, and nothing of it has been answered.
        assert deployment.wait_metric(lambda value: value > 0, "kvfence_leases", **state) > 0
    finally:
        for stream in reversed(streams):
            stream.close()
    deployment.assert_home()
    assert gone(deployment) > before


def test_leaving_while_waiting_for_room(deployment):
    waiting = {"queue": "admission", "node": "router"}
    streams = [deployment.stream(long_prompt(name), 8) for name in "EFGHIJKL"]
    try:
        assert deployment.wait_metric(lambda value: value >= 4, "kvfence_queue_length", **waiting) >= 4
        for stream in streams[2:]:
            stream.close()
        assert deployment.wait_metric(lambda value: value == 0, "kvfence_queue_length", **waiting) == 0
        # Who stayed is served.
        for stream in streams[:2]:
            assert stream.status == 200
            assert stream.read().done
    finally:
        for stream in streams:
            stream.close()


@pytest.mark.parametrize(
    "clients", [40, pytest.param(600, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_a_storm_of_clients_that_leave(deployment, clients):
    """Lengths, delays and who stays are drawn from one seed, before the first request."""
    draw = random.Random(STORM_SEED)
    visits = [
        {
            "prompt": long_prompt(f"s{number}x")[: draw.choice((40, 160, 400))],
            "max_tokens": draw.choice((1, 10, 60)),
            "delay_s": draw.choice((0.0, 0.01, 0.1, 0.4, 1.5)) * draw.random(),
            "events": draw.choice((0, 0, 1, 3, 10)),
            "stays": draw.random() < 0.15,
        }
        for number in range(clients)
    ]
    with ThreadPoolExecutor(STORM_AT_ONCE) as pool:
        outcomes = list(pool.map(lambda planned: visit(deployment, planned), visits))
    stayed = [outcome for outcome, planned in zip(outcomes, visits, strict=True) if planned["stays"]]
    assert len(stayed) > 2
    # However wild the others are, who stays gets a whole answer.
    assert [answer.error for answer in stayed] == [None] * len(stayed)
    assert all(answer.done and answer.finish in ("length", "stop") for answer in stayed)


def visit(deployment, planned):
    with deployment.stream(planned["prompt"], planned["max_tokens"]) as stream:
        if planned["stays"]:
            return stream.read()
        time.sleep(planned["delay_s"])
        for _ in range(planned["events"]):
            if stream.next_event() is None:
                break
        return stream.answer
