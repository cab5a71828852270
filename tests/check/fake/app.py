"""The fake as an ASGI app: under `FakeTransport` in virtual time, or under uvicorn on a real socket.

It reads the request, runs the server's answer beside a watch on the connection, and cancels the answer when
the client is gone.
"""

import asyncio
import json
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the server sees it; header names are lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self):
        """The body's object; raises ValueError."""
        return json.loads(self.body or b"{}")


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: whole bytes, or an async iterator of pieces of bytes."""

    status: int
    body: object
    headers: dict[str, str] = field(default_factory=dict)


def json_response(data, status=200, **headers):
    """An answer in JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, json.dumps(data).encode(), {"content-type": "application/json", **named})


class FakeApp:
    """ASGI around a handler: an async function of a Request that returns a Response."""

    def __init__(self, handler):
        self._handler = handler

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await _lifespan(receive, send)
        request = Request(
            scope["method"],
            scope["path"],
            {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
            await _body(receive),
        )
        answering = asyncio.ensure_future(self._answer(request, send))
        leaving = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not answering.done():
                answering.cancel()
        return await _ended(answering)

    async def _answer(self, request, send):
        response = await self._handler(request)
        headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
        is_whole = isinstance(response.body, bytes)
        if is_whole:
            headers.append((b"content-length", str(len(response.body)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if not is_whole:
            async for piece in response.body:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": response.body if is_whole else b""})


async def _ended(answering):
    try:
        await answering
    except asyncio.CancelledError:
        if not answering.cancelled():
            raise  # it is us who are cancelled


async def _body(receive):
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _gone(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


async def _lifespan(receive, send):
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
