"""The client over real sockets: a real server, connections that really close, TLS with a private authority."""

import asyncio
import json
import socket
import ssl
import struct
from contextlib import asynccontextmanager

import pytest
import trustme
import uvicorn

from kvfence.check.asks import Ask
from kvfence.check.client import HttpClient
from kvfence.check.credentials import Key, Redactor, Secret
from kvfence.check.reply import Failure
from kvfence.check.target import Target, Tenant, address_of
from kvfence.check.tls import ClientCertificate

ASK = Ask(prompt="hi", timeout_s=20)
ANSWER = json.dumps(
    {"model": "m", "choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
).encode()
EVENT = b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'


def client_to(url, *, tenants=("a", "b"), certificate=None, **settings):
    own = tuple(
        Tenant(name=name, credential=Key(Secret(f"key-of-{name}")), certificate=certificate)
        for name in tenants
    )
    target = Target(name="t", address=address_of(url), tenants=own, model="m", **settings)
    return HttpClient(target, run="run-1", redactor=Redactor())


class Endless:
    """An application that streams until its client is gone, and says so."""

    def __init__(self):
        self.began = asyncio.Event()
        self.gone = asyncio.Event()
        self.peers = {}

    async def __call__(self, scope, receive, send):
        name = dict(scope["headers"])[b"authorization"].decode()
        self.peers.setdefault(name, set()).add(scope["client"])
        body = json.loads((await receive())["body"])
        if not body.get("stream"):
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": ANSWER})
            return
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": EVENT, "more_body": True})
        self.began.set()
        assert (await receive())["type"] == "http.disconnect"
        self.gone.set()


@asynccontextmanager
async def uvicorn_at(app):
    """A real server in this very loop; yields its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, ws="none")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.force_exit = True
        await server.shutdown(sockets=[listening])


def test_a_real_server_answers_and_connections_are_kept_apart():
    async def go():
        app = Endless()
        async with uvicorn_at(app) as url:
            client = client_to(url)
            ask = Ask(prompt="hi", is_streaming=False, timeout_s=20)
            replies = [await client.ask(name, ask) for name in ("a", "b", "a", "b")]
            await client.aclose()
        return replies, app.peers

    replies, peers = asyncio.run(go())
    assert [reply.content for reply in replies] == ["Hello"] * 4
    a, b = peers["Bearer key-of-a"], peers["Bearer key-of-b"]
    assert (len(a), len(b)) == (1, 1), "a tenant's connection is used again"
    assert a.isdisjoint(b)


@pytest.mark.parametrize("settings", [{"hang_up_after_chunks": 1}, {"hang_up_after_s": 0.2}])
def test_hanging_up_is_heard_by_the_server(settings):
    async def go():
        app = Endless()
        async with uvicorn_at(app) as url:
            client = client_to(url)
            reply = await client.ask("a", Ask(prompt="hi", timeout_s=20, **settings))
            async with asyncio.timeout(20):
                await app.gone.wait()  # while the client is still open
            await client.aclose()
        return reply

    reply = asyncio.run(go())
    assert (reply.failure, reply.content) == (Failure.HUNG_UP, "x")


def test_cancelling_is_heard_by_the_server():
    async def go():
        app = Endless()
        async with uvicorn_at(app) as url:
            client = client_to(url)
            task = asyncio.ensure_future(client.ask("a", ASK))
            async with asyncio.timeout(20):
                await app.began.wait()
                task.cancel()
                await asyncio.wait([task])
                await app.gone.wait()
            await client.aclose()
        return task.cancelled()

    assert asyncio.run(go())


@asynccontextmanager
async def raw_server(say, context=None):
    """A server that reads a head and lets `say(writer)` answer; yields its port."""

    async def serve(reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            await say(writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def answer(writer):
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(ANSWER)}\r\n\r\n"
    writer.write(head.encode() + ANSWER)
    await writer.drain()


async def reset(writer):
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head + b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
    await writer.drain()
    linger = struct.pack("ii", 1, 0)  # closing sends a reset
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


async def rubbish(writer):
    writer.write(b"hello, who is there?\r\n\r\n")
    await writer.drain()


async def silence(_writer):
    """Close without a word."""


@pytest.mark.parametrize(
    ("say", "status"), [(reset, 200), (rubbish, None), (silence, None)], ids=["reset", "rubbish", "silence"]
)
def test_broken_connections_are_replies(say, status):
    async def go():
        async with raw_server(say) as port:
            client = client_to(f"http://127.0.0.1:{port}")
            reply = await client.ask("a", ASK)
            await client.aclose()
        return reply

    reply = asyncio.run(go())
    assert (reply.status, reply.failure) == (status, Failure.CUT)


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    client = client_to(f"http://127.0.0.1:{port}")

    async def go():
        reply = await client.ask("a", ASK)
        await client.aclose()
        return reply

    reply = asyncio.run(go())
    assert (reply.status, reply.failure) == (None, Failure.CONNECT)
    assert "refused" in reply.message.lower() or "connect call failed" in reply.message.lower()


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """A private authority, the server's context, and a client's certificate."""
    folder = tmp_path_factory.mktemp("papers")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(
        folder / "client.pem"
    )
    server = authority.issue_cert("127.0.0.1", "localhost")

    def context(*, asks_for_certificate, version=ssl.TLSVersion.TLSv1_3):
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.maximum_version = version
        server.configure_cert(made)
        if asks_for_certificate:
            made.verify_mode = ssl.CERT_REQUIRED
            authority.configure_trust(made)
        return made

    return folder, context


def asked_over_tls(papers, *, trusts=True, shows=False, **server):
    folder, context = papers

    async def go():
        async with raw_server(answer, context(**server)) as port:
            client = client_to(
                f"https://127.0.0.1:{port}",
                authority=folder / "ca.pem" if trusts else None,
                certificate=ClientCertificate(certificate=folder / "client.pem") if shows else None,
            )
            reply = await client.ask("a", ASK)
            await client.aclose()
        return reply

    return asyncio.run(go())


def test_tls_with_a_private_authority(papers):
    assert asked_over_tls(papers, asks_for_certificate=False).content == "Hello"


def test_an_authority_that_is_not_known_is_refused(papers):
    reply = asked_over_tls(papers, asks_for_certificate=False, trusts=False)
    assert (reply.status, reply.failure) == (None, Failure.TLS)
    assert "certificate verify failed" in reply.message


def test_mutual_tls(papers):
    assert asked_over_tls(papers, asks_for_certificate=True, shows=True).content == "Hello"


def test_a_certificate_that_is_missing(papers):
    old = asked_over_tls(papers, asks_for_certificate=True, version=ssl.TLSVersion.TLSv1_2)
    assert (old.status, old.failure) == (None, Failure.TLS)
    new = asked_over_tls(papers, asks_for_certificate=True)
    # With TLS 1.3 it depends on whether the reset overtakes the alert.
    assert new.status is None
    assert new.failure is Failure.TLS or "client certificate" in new.message
