"""Each misbehaviour is seen by a client as what it is called."""

from pathlib import Path

import httpx
import pytest
from tests.check.fake.misbehaviour import MISBEHAVIOURS, SLOW_S
from tests.check.fake.setup import Setup
from tests.check.fake.talk import talking
from tests.check.virtual import run


def answer_of(*names, is_streaming=False):
    async def go():
        async with talking(Setup(misbehaviours=names)) as talk:
            body = {"model": "toy-1", "messages": [{"role": "user", "content": "Reply ONLY: a b c d"}]}
            answer = await talk.client.post("/chat/completions", json={**body, "stream": is_streaming})
            return answer, talk.server.requests

    return run(go())


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("429", 429, "Rate limit"),
        ("500", 500, "Internal server error"),
        ("403", 403, "not allowed"),
        ("413", 413, "Too Large"),
        ("html", 502, "<html>"),
        ("html-200", 200, "<html>"),
        ("not-json", 200, '{"choices": ['),
        ("falling-back", 200, "toy-small"),
    ],
)
def test_an_answer_that_is_none(name, status, words):
    answer, _ = answer_of(name)
    assert answer.status_code == status
    assert words in answer.text


def test_a_cut_stream_raises():
    with pytest.raises(httpx.RemoteProtocolError):
        answer_of("cut", is_streaming=True)


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("no-done", '"finish_reason": "stop"', "[DONE]"),
        ("error-event", '"error"', '"finish_reason": "stop"'),
        ("pings", ": ping\r\n", "data: x"),
        ("torn", "[DONE]", "data: x"),
    ],
)
def test_a_stream_that_is_odd(name, has, lacks):
    answer, _ = answer_of(name, is_streaming=True)
    assert answer.status_code == 200
    assert has in answer.text
    assert lacks not in answer.text


def test_a_slow_server_runs_into_the_clients_time():
    async def go():
        async with talking(Setup(misbehaviours=("slow",))) as talk:
            talk.client.timeout = httpx.Timeout(SLOW_S / 2)
            with pytest.raises(httpx.ReadTimeout):
                await talk.ask("Reply ONLY: one")

    run(go())


def test_a_retrying_gateway_asks_twice_for_one_failure():
    answer, _ = answer_of("retrying-gateway", "500")
    assert answer.status_code == 500
    _, requests = answer_of("retrying-gateway")
    assert requests == 1


def test_a_wrong_type_keeps_the_body():
    answer, _ = answer_of("wrong-type")
    assert answer.headers["content-type"] == "text/plain"
    assert answer.json()["choices"][0]["message"]["content"] == "a b c d"


def test_every_misbehaviour_has_a_test():
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in MISBEHAVIOURS if f'"{name}"' not in text] == []
