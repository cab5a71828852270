"""A proxy before one prefill and one decode node, as small as it can be: what vLLM leaves to its operator.

Each request goes to prefill for one token; what prefill names in `kv_transfer_params` goes with the request
to decode, whose answer is passed on as it comes. It is a toy: no limit, no retry, no key.
"""

import http.client
import json
import threading
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

WAIT_SECONDS_MAX = 300
PIECE_BYTES = 65_536
ASKS_FOR_A_HANDOFF = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
TWO_LEGS = ("/v1/completions", "/v1/chat/completions")


def prefill_leg(body: dict) -> dict:
    """What prefill is asked: the same prompt, for one token and a hand-off."""
    left_out = ("stream", "stream_options", "max_completion_tokens", "min_tokens")
    leg = {name: value for name, value in body.items() if name not in left_out}
    return {**leg, "max_tokens": 1, "stream": False, "kv_transfer_params": ASKS_FOR_A_HANDOFF}


class Proxy:
    """Listens on a port of its own until `stop`."""

    def __init__(self, prefill: str, decode: str):
        handler = type("Handler", (_Handler,), {"prefill": prefill, "decode": decode})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    prefill: str
    decode: str

    def do_GET(self):
        self._pass_on("GET", None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path in TWO_LEGS:
            asked = json.loads(body)
            with _asked(self.prefill, "POST", self.path, json.dumps(prefill_leg(asked)).encode()) as reply:
                said = reply.read()
                if reply.status != 200:
                    self._answer(reply, said)
                    return
            handoff = json.loads(said).get("kv_transfer_params")
            body = json.dumps({**asked, "kv_transfer_params": handoff}).encode()
        self._pass_on("POST", body)

    def _pass_on(self, method, body):
        with _asked(self.decode, method, self.path, body) as reply:
            if reply.getheader("Transfer-Encoding") != "chunked":
                self._answer(reply, reply.read())
                return
            self._head(reply, "Transfer-Encoding", "chunked")
            # A client that has gone ends the request to decode, too: that connection is closed with this one.
            with suppress(BrokenPipeError, ConnectionResetError):
                while piece := reply.read1(PIECE_BYTES):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

    def _answer(self, reply, content):
        self._head(reply, "Content-Length", str(len(content)))
        self.wfile.write(content)

    def _head(self, reply, name, value):
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.getheader("Content-Type", "application/json"))
        self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_):
        """Nothing: a test says what it saw."""


@contextmanager
def _asked(node, method, path, body):
    with closing(http.client.HTTPConnection(urlsplit(node).netloc, timeout=WAIT_SECONDS_MAX)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        yield connection.getresponse()
