"""The same fake behind uvicorn, on a real socket: what the transport without sockets stands for."""

import asyncio
import socket

import httpx
import pytest
import uvicorn
from tests.check.fake.clock import Clock
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup

FAST = Clock(a_s=0.001, b_s=0.0, step_s=0.001)


async def on_a_socket(server, go):
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(server.app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    serving = asyncio.ensure_future(running.serve(sockets=[listener]))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    try:
        async with httpx.AsyncClient(base_url=address, timeout=10) as client:
            return await go(client)
    finally:
        running.should_exit = True
        await serving


def ask(words, **more):
    return {"messages": [{"role": "user", "content": words}], "temperature": 0, **more}


def test_it_answers_and_streams():
    async def go(client):
        whole = await client.post("/chat/completions", json=ask("Reply ONLY: one two"))
        stream = await client.post("/chat/completions", json=ask("Reply ONLY: one two", stream=True))
        return whole.json()["choices"][0]["message"]["content"], stream.text.strip().rsplit("\n", 1)[-1]

    assert asyncio.run(on_a_socket(FakeServer(Setup(clock=FAST)), go)) == ("one two", "data: [DONE]")


def test_a_closed_connection_reaches_it():
    server = FakeServer(Setup(clock=FAST))

    async def go(client):
        async with client.stream(
            "POST", "/chat/completions", json=ask("Count from 1 to 9000", stream=True)
        ) as answer:
            await anext(answer.aiter_lines())
        async with asyncio.timeout(10):
            await server.engine.someone_left.wait()

    asyncio.run(on_a_socket(server, go))
    assert server.engine.rows == []


def test_a_cut_stream_is_cut():
    async def go(client):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/chat/completions", json=ask("Reply ONLY: a b c d e f", stream=True))

    asyncio.run(on_a_socket(FakeServer(Setup(clock=FAST, misbehaviours=("cut",))), go))
