"""A network that is a function: each request goes to a handler, whose answer comes in pieces at its own times."""

import asyncio
import json

import httpx

from kvfence.check.client import HttpClient
from kvfence.check.credentials import Key, Redactor, Secret
from kvfence.check.target import Target, Tenant, address_of

KEYS = {"a": "key-of-tenant-a", "b": "key-of-tenant-b"}
STREAM = {"content-type": "text/event-stream"}


class Pieces(httpx.AsyncByteStream):
    """A body of bytes, of seconds to wait, and of errors to raise; it knows whether it was closed."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.is_closed = False

    async def __aiter__(self):
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, bytes):
                yield piece
            else:
                await asyncio.sleep(piece)

    async def aclose(self):
        self.is_closed = True


class Scripted(httpx.AsyncBaseTransport):
    """Keeps what was sent, and answers by a handler: request → Response, or awaitable of one."""

    def __init__(self, handler):
        self.handler = handler
        self.requests = []

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests if request.content]

    async def handle_async_request(self, request):
        await request.aread()
        self.requests.append(request)
        answer = self.handler(request)
        return await answer if asyncio.iscoroutine(answer) else answer


def events(*answers):
    """The bytes of a stream: one event for each object, text or [DONE]."""
    return b"".join(
        f"data: {answer if isinstance(answer, str) else json.dumps(answer)}\n\n".encode()
        for answer in answers
    )


def delta(text, *, finish=None, model="m"):
    return {"model": model, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def streamed(*pieces, **headers):
    return httpx.Response(200, headers=STREAM | headers, stream=Pieces(*pieces))


def client_of(handler, *, url="https://example.org", redactor=None, tenants=None, **settings):
    """A client with tenants a and b, and the network behind it."""
    redactor = redactor or Redactor()
    for key in KEYS.values():
        redactor.learn(Secret(key))
    if tenants is None:
        tenants = tuple(Tenant(name=name, credential=Key(Secret(key))) for name, key in KEYS.items())
    target = Target(name="t", address=address_of(url), tenants=tenants, model="m", **settings)
    network = Scripted(handler)
    return HttpClient(target, run="run-1", redactor=redactor, transport=network), network
