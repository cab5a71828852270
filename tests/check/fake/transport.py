"""An httpx transport that runs an ASGI app in the same event loop: no sockets, so it works in virtual time.

Rules it keeps:
- Bodies arrive chunk by chunk, when the app sends them.
- Whoever closes a response early, or is cancelled while waiting, is a client that disconnected: the app hears
  `http.disconnect`.
- The timeouts of httpx hold: reading raises ReadTimeout. What dies before its headers is a connection that was
  closed (ReadError, or ConnectError for a server that is down); after them it is a body that was cut.
"""

import asyncio

import httpx


class DownError(Exception):
    """Raised by an app: nobody listens any more."""


class FakeTransport(httpx.AsyncBaseTransport):
    """Sends every request to an app, or by host to one of several; an unknown host refuses the connection."""

    def __init__(self, app):
        self._apps = app if isinstance(app, dict) else None
        self._app = app
        self._tasks = set()

    async def handle_async_request(self, request):
        app = self._app if self._apps is None else self._apps.get(request.url.netloc.decode())
        if app is None:
            raise httpx.ConnectError("[Errno 111] Connection refused", request=request)
        exchange = _Exchange(request, await request.aread())
        task = asyncio.get_running_loop().create_task(exchange.run(app))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            status, headers = await exchange.wait(exchange.started, "read")
        except BaseException:
            exchange.disconnect()
            raise
        return httpx.Response(status, headers=headers, stream=_Body(exchange), request=request)


class BrokenTransport(httpx.AsyncBaseTransport):
    """Every request ends with one error: a certificate that does not verify, a name that is not found."""

    def __init__(self, error):
        self._error = error

    async def handle_async_request(self, request):
        raise self._error


class _Exchange:
    """One request and its response, between the two sides."""

    def __init__(self, request, body):
        loop = asyncio.get_running_loop()
        self._request, self._body, self._gone = request, body, asyncio.Event()
        self._is_read = False
        self.started = loop.create_future()
        self.chunks = asyncio.Queue()

    async def run(self, app):
        """Run the app to its end."""
        url = self._request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": url.scheme,
            "path": url.path,
            "query_string": url.query,
            "headers": [(key.lower(), value) for key, value in self._request.headers.raw],
        }
        try:
            await app(scope, self._receive, self._send)
        except DownError:
            self._fail(httpx.ConnectError("[Errno 111] Connection refused", request=self._request))
        except ConnectionError as error:
            self._fail(httpx.ReadError(str(error), request=self._request))
        self._fail(httpx.ReadError("Server disconnected without sending a response.", request=self._request))

    def disconnect(self):
        """The client is gone."""
        self._gone.set()
        if self.started.done() and not self.started.cancelled():
            self.started.exception()  # it was told, or nobody asks any more

    async def wait(self, what, kind):
        """Wait for the app's next word, as long as the client's timeout allows."""
        seconds = self._request.extensions.get("timeout", {}).get(kind)
        try:
            async with asyncio.timeout(seconds):
                return await what
        except TimeoutError as error:
            raise httpx.ReadTimeout("timed out", request=self._request) from error

    async def _receive(self):
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            if not self.started.done():
                self.started.set_result((message["status"], message["headers"]))
            return
        if message.get("body"):
            self.chunks.put_nowait(message["body"])
        if not message.get("more_body", False):
            self.chunks.put_nowait(None)

    def _fail(self, error):
        """What was not said by now never will be."""
        if not self.started.done():
            self.started.set_exception(error)
            if self._gone.is_set():
                self.started.exception()
        cut = httpx.RemoteProtocolError(
            "peer closed connection without sending complete message body (incomplete chunked read)",
            request=self._request,
        )
        self.chunks.put_nowait(cut)


class _Body(httpx.AsyncByteStream):
    """The response's body, as it comes."""

    def __init__(self, exchange):
        self._exchange = exchange

    async def __aiter__(self):
        while True:
            chunk = await self._exchange.wait(self._exchange.chunks.get(), "read")
            if chunk is None:
                return
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def aclose(self):
        self._exchange.disconnect()
