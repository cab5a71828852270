"""Servers for tests: an HTTP transport that answers by path, and the same over a real socket."""

import contextlib
import http.server
import threading

import httpx
from tests.audit.hearing import body_of


class Streaming(httpx.MockTransport):
    """Gives bodies as a network does: not read yet."""

    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        if not response.is_stream_consumed:
            return response
        return httpx.Response(
            response.status_code, headers=response.headers, stream=httpx.ByteStream(response.content)
        )


class Answers:
    """Answers by path: what was said, or (status, what was said), or (status, what, headers).

    `key`: paths in `locked` want it. Every request is written down.
    """

    def __init__(self, by_path, *, key=None, locked=()):
        self.by_path = by_path
        self.key = key
        self.locked = locked
        self.asked = []

    def answer(self, method, host, path, headers):
        self.asked.append((method, host, path, headers.get("authorization")))
        if path in self.locked and headers.get("authorization") != f"Bearer {self.key}":
            return 401, b'{"error": "key"}', {}
        said = self.by_path.get(path, (404, {"error": "no route"}))
        status, body, more = (*said, {})[:3] if isinstance(said, tuple) else (200, said, {})
        return status, body_of(body), more

    def transport(self):
        def handle(request: httpx.Request) -> httpx.Response:
            status, body, headers = self.answer(
                request.method, request.url.host, request.url.path, request.headers
            )
            return httpx.Response(status, content=body, headers=headers)

        return Streaming(handle)

    @property
    def paths(self):
        return [path for _, _, path, _ in self.asked]


@contextlib.contextmanager
def over_a_socket(answers, tls=None):
    """Its URL, while it serves on loopback; `tls` is the server's SSL context."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body, more = answers.answer("GET", "socket", self.path, headers)
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
