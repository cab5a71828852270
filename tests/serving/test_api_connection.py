"""Connections that misbehave: clients that leave, stall, send too much or too slowly."""

import asyncio
import contextlib
import json
import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import openai
import pytest
from tests.serving.api_fakes import MODEL, FakeFrontend, FakeStream, client_of, says, serving

from kvfence.protocol.words import End, EndReason
from kvfence.serving.api import ApiSettings
from kvfence.serving.api_body import ClientGone
from kvfence.serving.api_connection import Connection
from kvfence.serving.app import send_at_once
from kvfence.serving.jobs import EndDelta

BODY_MAX = 1 << 16
SETTINGS = ApiSettings(model_id=MODEL, body_bytes_max=BODY_MAX, body_timeout_s=0.3)
WAIT_S = 10
JSON = {"content-type": "application/json"}


@contextmanager
def connected(url):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=WAIT_S) as sock:
        yield sock


def ask(sock, body, *headers, path="/v1/completions"):
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *headers, "", ""]
    sock.sendall("\r\n".join(lines).encode() + body)


def read_all(sock):
    received = b""
    while chunk := sock.recv(65536):
        received += chunk
    return received


def never_ends(job):
    return says(" fine.")(job)[:-1]


@pytest.mark.parametrize("stream", [False, True])
def test_client_that_leaves_aborts_its_jobs(stream):
    frontend = FakeFrontend(script=never_ends)
    with serving(frontend) as url:
        with connected(url) as sock:
            body = json.dumps({"model": MODEL, "prompt": "x", "n": 2, "stream": stream}).encode()
            ask(sock, body, f"Content-Length: {len(body)}")
            assert frontend.submitted.wait(WAIT_S)
            if stream:
                received = b""
                while b" fine" not in received:  # in one piece with the head, or in the next
                    received += sock.recv(65536)
            assert not any(job.cancelled.is_set() for job in frontend.streams)
        assert len(frontend.streams) == 2
        assert all(job.cancelled.wait(WAIT_S) for job in frontend.streams)


def test_client_that_leaves_gives_its_share_back():
    frontend = FakeFrontend(script=never_ends, limit_tokens=8)
    with serving(frontend) as url, httpx.Client(base_url=url) as http:
        with connected(url) as sock:
            body = json.dumps({"model": MODEL, "prompt": [1] * 6, "n": 4}).encode()
            ask(sock, body, f"Content-Length: {len(body)}")
            assert frontend.submitted.wait(WAIT_S)
            full = http.post("/v1/completions", json={"model": MODEL, "prompt": [1] * 7, "n": 4})
            assert full.status_code == 429
        assert all(job.cancelled.wait(WAIT_S) for job in frontend.streams)
        frontend.script = says(" fine.")
        again = http.post("/v1/completions", json={"model": MODEL, "prompt": [1] * 7, "n": 4})
        assert again.status_code == 200


def test_large_body_is_refused_without_being_read():
    with serving(FakeFrontend(), settings=SETTINGS) as url, connected(url) as sock:
        ask(sock, b"", f"Content-Length: {100 << 20}")
        answer = read_all(sock)  # the server closes: nobody has to send the body first
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in answer
    assert b"connection: close" in answer.lower()


def test_hundred_megabytes_from_real_clients():
    with client_of(FakeFrontend(), settings=SETTINGS) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            client.completions.create(model=MODEL, prompt="x" * (100 << 20))
        assert caught.value.status_code == 413
        assert client.completions.create(model=MODEL, prompt="x").choices


def test_large_chunked_body_is_refused_as_soon_as_it_is_too_large():
    with serving(FakeFrontend(), settings=SETTINGS) as url, connected(url) as sock:
        ask(sock, b"", "Transfer-Encoding: chunked")
        sock.sendall(b"%x\r\n" % (BODY_MAX + 1) + b"x" * (BODY_MAX + 1))  # the chunk is not even over
        assert read_all(sock).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(("size", "status"), [(BODY_MAX, 200), (BODY_MAX + 1, 413)])
def test_body_at_its_bound(size, status):
    with serving(FakeFrontend(limit_tokens=1 << 20), settings=SETTINGS) as url:
        body = json.dumps({"model": MODEL, "prompt": "x"}).encode()
        body += b" " * (size - len(body))
        assert httpx.post(f"{url}/v1/completions", content=body, headers=JSON).status_code == status

        def chunks():
            yield body[:1000]
            yield body[1000:]

        assert httpx.post(f"{url}/v1/completions", content=chunks(), headers=JSON).status_code == status


def test_body_that_does_not_arrive():
    with serving(FakeFrontend(), settings=SETTINGS) as url, connected(url) as sock:
        ask(sock, b'{"mod', "Content-Length: 100")
        answer = read_all(sock)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"request_timeout" in answer


def test_client_that_leaves_in_mid_body_disturbs_nobody():
    frontend = FakeFrontend()
    with serving(frontend) as url:
        with connected(url) as sock:
            ask(sock, b'{"mod', "Content-Length: 100")
        assert httpx.post(f"{url}/v1/completions", json={"model": MODEL, "prompt": "x"}).status_code == 200
    assert len(frontend.jobs) == 1


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "9" * 30])
def test_nonsense_lengths(length):
    with serving(FakeFrontend(), settings=SETTINGS) as url, connected(url) as sock:
        ask(sock, b"{}", f"Content-Length: {length}")
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock)[9:12] in {b"400", b"413"}


def test_too_many_headers():
    with serving(FakeFrontend()) as url, connected(url) as sock:
        ask(sock, b"", *[f"X-{number}: {'x' * 1000}" for number in range(200)])
        # The server closes with headers unread, so that its 400 may be lost to a reset.
        with contextlib.suppress(ConnectionResetError):
            assert read_all(sock)[9:12] in {b"400", b""}
        assert httpx.get(f"{url}/health").status_code == 200


UNSAFE = {"headers": (("x-kvfence-unsafe", "some-fault"),)}


def test_headers_of_the_deployment_are_on_every_answer_once():
    with serving(FakeFrontend(), **UNSAFE) as url, httpx.Client(base_url=url) as http:
        body = {"model": MODEL, "prompt": "x"}
        answers = [
            http.get("/health"),
            http.get("/none"),
            http.post("/v1/completions", content=b"x", headers=JSON),
            http.post("/v1/completions", json=body),
            http.post("/v1/completions", json={**body, "stream": True}),
        ]
    assert [answer.status_code for answer in answers] == [200, 404, 400, 200, 200]
    assert {answer.headers["x-kvfence-unsafe"] for answer in answers} == {"some-fault"}


def test_headers_of_the_deployment_are_on_answers_that_the_application_never_sees(monkeypatch):
    with serving(FakeFrontend(), **UNSAFE) as url, connected(url) as sock:
        sock.sendall(b"no http\r\n\r\n")
        head, _, words = read_all(sock).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-kvfence-unsafe: some-fault" in head.split(b"\r\n")
    assert words == b"Invalid HTTP request received."
    monkeypatch.setattr("kvfence.serving.app.CONNECTIONS_MAX", 1)
    with serving(FakeFrontend(), **UNSAFE) as url, connected(url):
        busy = httpx.get(f"{url}/health")
    assert (busy.status_code, busy.headers["x-kvfence-unsafe"]) == (503, "some-fault")


def test_keep_alive_after_an_error():
    with serving(FakeFrontend()) as url, httpx.Client(base_url=url) as http:
        assert http.post("/v1/completions", content=b"x", headers=JSON).status_code == 400
        assert http.post("/v1/completions", json={"model": MODEL, "prompt": "x"}).status_code == 200


# ---------------------------------------------------------------- request ids
@pytest.mark.parametrize("value", ["abc", "a b", "x" * 128])
def test_request_id_is_echoed(value):
    with serving(FakeFrontend()) as url:
        response = httpx.get(f"{url}/health", headers={"x-request-id": value})
    assert (response.status_code, response.headers["x-request-id"]) == (200, value)


@pytest.mark.parametrize("value", [b"x" * 129, b"\xc3\xa9", b"a\tb", b""])
def test_request_id_that_cannot_be_echoed(value):
    with serving(FakeFrontend()) as url:
        response = httpx.get(f"{url}/health", headers=[(b"x-request-id", value)])
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "X-Request-Id"
    assert response.headers["x-request-id"].startswith("req-")


def test_request_id_sent_twice():
    with serving(FakeFrontend()) as url:
        response = httpx.get(f"{url}/health", headers=[("x-request-id", "a"), ("x-request-id", "b")])
    assert response.status_code == 400


def test_request_id_is_no_key():
    """Two tenants with the same id, at the same time, each get their own answer."""
    both = threading.Barrier(2)

    def script(job):
        return says(" tenant " + job.tenant)(job)

    answers = {}

    def send(key):
        both.wait(WAIT_S)
        headers = {"authorization": f"Bearer {key}", "x-request-id": "same"}
        answers[key] = httpx.post(
            f"{url}/v1/completions", json={"model": MODEL, "prompt": "x"}, headers=headers
        )

    frontend = FakeFrontend(script=script)
    with serving(frontend) as url:
        threads = [threading.Thread(target=send, args=(key,)) for key in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    texts = {key: answer.json()["choices"][0]["text"] for key, answer in answers.items()}
    assert set(texts.values()) == {f" tenant {job.tenant}" for job in frontend.jobs}
    assert len(set(texts.values())) == 2
    assert {answer.headers["x-request-id"] for answer in answers.values()} == {"same"}
    assert len({job.request_id for job in frontend.jobs}) == 2
    assert not any("same" in job.request_id for job in frontend.jobs)


# ---------------------------------------------------------------- without a network
class FakeNet:
    """Receives nothing until the client leaves; takes what is sent, or stalls."""

    def __init__(self, *, stalls=False):
        self.sent = []
        self.gone = asyncio.Event()
        self._stalls = stalls

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if self._stalls and message["type"] == "http.response.body":
            await asyncio.Event().wait()
        self.sent.append(message)

    def connection(self, *, stall_s=WAIT_S):
        return Connection({"type": "http", "headers": []}, self.receive, self.send, stall_s=stall_s)


def test_client_that_takes_nothing_is_gone():
    async def run():
        connection = FakeNet(stalls=True).connection(stall_s=0.001)
        await connection.start_stream()
        with pytest.raises(ClientGone):
            await connection.send_event({})

    asyncio.run(run())


def test_work_ends_when_the_client_goes():
    async def run():
        net, state = FakeNet(), []

        async def work():
            try:
                net.gone.set()
                await asyncio.Event().wait()
            finally:
                state.append("cancelled")

        with pytest.raises(ClientGone):
            await net.connection().while_connected(work())
        assert state == ["cancelled"]

    asyncio.run(run())


def test_work_gives_its_result_and_its_error():
    async def run():
        async def work():
            return 5

        async def fail():
            raise KeyError

        connection = FakeNet().connection()
        assert await connection.while_connected(work()) == 5
        with pytest.raises(KeyError):
            await connection.while_connected(fail())

    asyncio.run(run())


def test_begun_stream_that_fails_has_no_mark_of_its_end():
    frontend = FakeFrontend(
        script=lambda job: [*never_ends(job), EndDelta(End(EndReason.PEER_LOST), 1, 2, 0)]
    )
    with serving(frontend) as url:
        body = {"model": MODEL, "prompt": "x", "stream": True}
        response = httpx.post(f"{url}/v1/completions", json=body)
    events = response.text.split("\n\n")
    assert events[-1] == ""
    assert json.loads(events[-2].removeprefix("data: "))["error"]["code"] == "peer_lost"
    assert "[DONE]" not in response.text
    assert '"finish_reason":"' not in response.text


def test_complete_stream_has_the_mark_of_its_end():
    with serving(FakeFrontend()) as url:
        body = {"model": MODEL, "prompt": "x", "stream": True}
        response = httpx.post(f"{url}/v1/completions", json=body)
    assert response.text.endswith("data: [DONE]\n\n")
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"


def test_small_writes_leave_at_once():
    """A socket made without naming TCP, as servers are given them."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        assert not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        send_at_once(asyncio.BaseTransport({"socket": accepted}))
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


class BrokenFrontend(FakeFrontend):
    """Its streams fail as nothing should: after one token, without an end."""

    def submit(self, jobs):
        streams = super().submit(jobs)
        for stream in streams:
            stream.__class__ = BrokenStream
        return streams


class BrokenStream(FakeStream):
    async def __aiter__(self):
        yield self._script[0]
        raise ZeroDivisionError


def test_fault_of_ours_in_a_begun_stream_breaks_the_connection():
    """No client can take that for the end of an answer."""
    with serving(BrokenFrontend()) as url:
        body = {"model": MODEL, "prompt": "x"}
        assert httpx.post(f"{url}/v1/completions", json=body).status_code == 500
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{url}/v1/completions", json=body | {"stream": True})
        assert httpx.get(f"{url}/health").status_code == 200
