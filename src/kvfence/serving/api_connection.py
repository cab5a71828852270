"""One HTTP exchange: reads the body, watches for the client's leaving, writes an answer or a stream.

Rules it keeps:
- Work for a client ends when the client goes: `while_connected` cancels it.
- A client that takes nothing for too long is treated as gone, so that it holds nothing for ever.
- A stream that fails says so in an error event and ends without [DONE]: clients raise an error on it, and
  none takes what came before for a whole answer.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from kvfence.serving.api_body import ClientGone, headers_of, read_body
from kvfence.serving.errors import ApiError

T = TypeVar("T")
SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


class Connection:
    """The exchange over which one request came."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, *, stall_s: float) -> None:
        """`stall_s` is how long a write may wait for the client."""
        self._scope = scope
        self._receive = receive
        self._send = send
        self._stall_s = stall_s
        self._is_streaming = False

    def headers(self, name: bytes) -> list[str]:
        """Return the values of a request header."""
        return headers_of(self._scope, name)

    async def read_body(self, *, bytes_max: int, timeout_s: float) -> bytes:
        """Read the body. Raises ApiError or ClientGone."""
        return await read_body(self._scope, self._receive, bytes_max=bytes_max, timeout_s=timeout_s)

    async def while_connected(self, work: Coroutine[None, None, T]) -> T:
        """Return what `work` returns; cancel it and raise ClientGone when the client leaves first.

        To be called once the body was read: from then on the connection has nothing but its end to tell.
        """
        task = asyncio.create_task(work)
        watcher = asyncio.create_task(self._until_gone())
        try:
            await asyncio.wait((task, watcher), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGone
            return task.result()
        finally:
            for each in (task, watcher):
                each.cancel()
            await asyncio.gather(task, watcher, return_exceptions=True)

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def send_json(self, content: object, *, status: int = 200) -> None:
        """Send a whole answer."""
        await self._send_whole(status, msgspec.json.encode(content), {})

    async def send_error(self, error: ApiError) -> None:
        """Send an error as an answer, or as the last event of the stream that was begun."""
        if self._is_streaming:
            await self.send_event(error.payload())
            await self._write(b"", more=False)
        else:
            await self._send_whole(error.status, error.body(), error.headers())

    async def start_stream(self) -> None:
        """Send the head of a stream of events: from here on the status is 200."""
        await self._start(200, SSE_HEADERS)
        self._is_streaming = True

    async def send_event(self, content: object) -> None:
        """Send one event of the stream."""
        await self._write(b"data: " + msgspec.json.encode(content) + b"\n\n", more=True)

    async def end_stream(self) -> None:
        """Send the mark of a complete stream, and end it."""
        await self._write(b"data: [DONE]\n\n", more=False)

    async def _send_whole(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        whole = {"content-type": "application/json", "content-length": str(len(body))}
        await self._start(status, whole | dict(headers))
        await self._write(body, more=False)

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        packed = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": packed})

    async def _write(self, body: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._stall_s):
                await self._send({"type": "http.response.body", "body": body, "more_body": more})
        except (TimeoutError, OSError) as error:
            raise ClientGone from error
