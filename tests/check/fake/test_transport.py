"""The transport: chunks as they come, a closed stream is a disconnect, and the client's timeouts hold."""

import asyncio

import httpx
import pytest
from tests.check.fake.setup import Setup
from tests.check.fake.talk import talking
from tests.check.fake.transport import BrokenTransport, FakeTransport
from tests.check.virtual import run


def test_chunks_come_one_by_one():
    async def go():
        async with talking() as talk:
            body = {"messages": [{"role": "user", "content": "Count from 1 to 9"}], "stream": True}
            async with talk.client.stream("POST", "/chat/completions", json=body) as answer:
                return {asyncio.get_running_loop().time() async for _ in answer.aiter_bytes()}

    assert len(run(go())) > 9


def test_who_closes_a_stream_early_has_left():
    async def go():
        async with talking() as talk:
            await talk.stream("Count from 1 to 900", chunks_max=3)
            await asyncio.sleep(0.1)
            engine = talk.server.engine
            return engine.live, engine.rows

    assert run(go()) == ({}, [])


def test_who_stops_waiting_has_left():
    async def go():
        async with talking() as talk:
            await talk.hang_up("rain " * 4_000, after_s=0.2)
            await asyncio.sleep(0.1)
            return talk.server.engine.live

    assert run(go()) == {}


def test_a_server_is_found_by_its_host():
    async def go():
        async with talking() as talk:
            transport = FakeTransport({"one:8000": talk.server.app})
            async with httpx.AsyncClient(transport=transport) as client:
                assert (await client.get("http://one:8000/v1/models")).status_code == 200
                with pytest.raises(httpx.ConnectError):
                    await client.get("http://two:8000/v1/models")

    run(go())


def test_a_broken_transport_breaks():
    async def go():
        error = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
        async with httpx.AsyncClient(transport=BrokenTransport(error)) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("https://one/v1/models")

    run(go())


def test_a_crash_ends_the_streams_of_others():
    async def go():
        async with talking(Setup(prefill_tokens=1_000, faults=("over-length/crash",))) as talk:
            other = asyncio.ensure_future(talk.stream("Count from 1 to 900", max_tokens=200))
            await asyncio.sleep(1)
            with pytest.raises(httpx.TransportError):
                await talk.ask("rain " * 2_000)
            with pytest.raises(httpx.RemoteProtocolError):
                await other

    run(go())
