"""The metrics of a watch over HTTP: `GET /metrics` for Prometheus, `GET /health` for whoever starts it.

Rules it keeps: loopback unless told otherwise; nothing is read from a request but its path; what is served is
one text that the watch replaces, so that a reader never waits for a look.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from kvfence.protocol.errors import OperatorError

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """Serves one text. A context: it listens from entering to leaving."""

    def __init__(self, host: str, port: int) -> None:
        """`port` 0 takes any that is free. Raises OperatorError when the address cannot be had."""
        self.text = ""
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler())
        except OSError as error:
            raise OperatorError(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another with --listen"
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        served = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10.0

            def do_GET(self) -> None:
                """Answer with the text, or that there is nothing."""
                path = self.path.partition("?")[0]
                body = {"/metrics": served.text, "/health": "ok\n"}.get(path)
                self.send_response(404 if body is None else 200)
                content = (body or "there are /metrics and /health\n").encode()
                self.send_header("content-type", CONTENT_TYPE)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: Any) -> None:
                """Say nothing: scrapes are no news."""

        return Handler
