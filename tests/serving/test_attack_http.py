"""Clients that take connections and ask for nothing."""

import json
import socket
import time
from urllib.parse import urlsplit

import pytest
from tests.serving.api_fakes import MODEL, FakeFrontend, says, serving

from kvfence.serving.app import PromptProtocol

HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(PromptProtocol, "head_timeout_s", 0.2)


def dial(url):
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=10)


def read_all(sock) -> bytes:
    """What comes until the server ends the connection."""
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("said", [b"", b"G", HEAD, HEAD + b"\r\n", HEAD + b"\r\n" + HEAD])
def test_a_connection_whose_next_request_does_not_come_is_ended(said):
    with serving(FakeFrontend()) as url, dial(url) as sock:
        sock.sendall(said)
        answer = read_all(sock)
    assert answer.count(b"200 OK") == said.count(b"\r\n\r\n")


@pytest.mark.usefixtures("impatient")
def test_a_request_that_is_being_answered_is_not_ended():
    frontend = FakeFrontend(script=lambda job: says(" fine.")(job)[:-1])  # it waits to be cancelled
    body = json.dumps({"model": MODEL, "prompt": "a", "stream": True}).encode()
    head = (
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    with serving(frontend) as url, dial(url) as sock:
        sock.sendall(head + body)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(0.5)
        assert not frontend.streams[0].cancelled.is_set()
    assert frontend.streams[0].cancelled.wait(10)
