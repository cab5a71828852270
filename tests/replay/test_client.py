"""The client, against a small server of the test's own: answers, errors, leaving, figures."""

import http.server
import json
import threading

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.replay.client import Ask, Client, Metrics

ASK = Ask("tenant-b", "hello", 3, frequency_penalty=1.0)
EXPOSITION = """
# HELP kvfence_leases leases
kvfence_leases{node="decode-0",state="closing"} 2.0
kvfence_leases{node="prefill-0",state="closing"} 1.0
kvfence_integrity_failures_total{node="decode-0",reason="manifest_tokens"} 1.0
kvfence_integrity_failures_total{node="decode-0",reason="seal_torn"} 0.0
"""


def event(text="", finish=None, usage=None):
    choices = [] if usage else [{"text": text, "finish_reason": finish}]
    return f"data: {json.dumps({'choices': choices, 'usage': usage})}\n\n".encode()


WHOLE = [
    event("one "),
    event("two", "length"),
    event(usage={"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}),
    b"data: [DONE]\n\n",
]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.tenants.append(self.headers["Authorization"])
        self.send_response(self.server.status)
        self.send_header("x-kvfence-unsafe", "a/b")
        self.end_headers()
        for chunk in self.server.chunks:
            self.wfile.write(chunk)

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(EXPOSITION.encode() if self.path == "/metrics" else b'{"nodes": []}')

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.status, made.chunks, made.bodies, made.tenants = 200, WHOLE, [], []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def client(server):
    return Client(f"http://127.0.0.1:{server.server_port}", "a-model")


def test_an_answer_is_put_together_and_timed(server, client):
    answer = client.complete(ASK)
    assert (answer.status, answer.text, answer.finish) == (200, "one two", "length")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (5, 2, 1)
    assert 0 < answer.first_token_seconds <= answer.seconds
    assert answer.is_whole
    assert (answer.code, answer.unsafe_header, answer.ask) == (None, "a/b", ASK)
    (body,) = server.bodies
    assert (body["model"], body["prompt"], body["max_tokens"], body["temperature"]) == (
        "a-model",
        "hello",
        3,
        0,
    )
    assert body["frequency_penalty"] == 1.0
    assert server.tenants == ["Bearer tenant-b"]


def test_a_refusal_is_an_answer_too(server, client):
    server.status, server.chunks = (
        400,
        [b'{"error": {"code": "context_length_exceeded", "message": "too long"}}'],
    )
    answer = client.complete(ASK)
    assert (answer.status, answer.code, answer.message) == (400, "context_length_exceeded", "too long")
    assert (answer.text, answer.first_token_seconds) == ("", None)
    assert not answer.is_whole
    with client.stream(ASK) as stream:
        assert not stream.wait_first()


def test_an_error_in_the_middle_is_kept(server, client):
    server.chunks = [event("one "), b'data: {"error": {"code": "integrity", "message": "torn"}}\n\n']
    answer = client.complete(ASK)
    assert (answer.status, answer.text, answer.code) == (200, "one ", "integrity")
    assert not answer.is_whole


def test_a_stream_can_be_left_standing_and_left(client):
    with client.stream(ASK) as first:
        assert first.wait_first()
        assert client.complete(ASK).text == "one two"
        assert first.read().text == "one two"


def test_figures_are_read(client):
    metrics = client.metrics()
    assert metrics.total("kvfence_leases") == 3
    assert metrics.total("kvfence_leases", node="decode-0") == 2
    assert metrics.total("kvfence_nothing") == 0
    assert metrics.raised("kvfence_integrity_failures_total", "reason") == ("manifest_tokens",)
    assert client.server_info() == {"nodes": []}
    assert Metrics.parse("").samples == ()


@pytest.mark.parametrize("url", ["http://example.com:80", "http://10.0.0.1:8000", "http://127.0.0.1"])
def test_it_speaks_to_loopback_alone(url):
    with pytest.raises(InvariantError, match="loopback"):
        Client(url, "m")
