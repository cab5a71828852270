"""What the network may do to a request: each is a reply, in time, and closes what it leaves."""

import asyncio
import gzip
import ssl
import zlib

import httpx
import pytest
from tests.check.scripted_http import STREAM, Pieces, client_of, delta, events, streamed
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.exchange import ANSWER_BYTES_MAX, Bounds, trouble_of
from kvfence.check.reply import Failure

HEL, LO, DONE = events(delta("Hel")), events(delta("lo", finish="stop")), events("[DONE]")


def asked(answer, **asks):
    """One ask of a network that gives `answer`: a response, a function, or an error that it raises."""

    def handler(request):
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    async def go():
        client, _ = client_of(handler)
        reply = await client.ask("a", Ask(prompt="hi", **asks))
        await client.aclose()
        return reply

    return run(go())


def never(_request):
    async def wait():
        await asyncio.Event().wait()

    return wait()


def test_times_are_the_loops():
    reply = asked(streamed(2, HEL, 3, LO, 1, DONE))
    assert reply.chunk_times_s == (2, 5)
    assert (reply.ttft_s, reply.total_s) == (2, 6)
    assert reply.bytes_read == len(HEL + LO + DONE)


def test_a_server_that_never_answers():
    reply = asked(never, timeout_s=20)
    assert (reply.status, reply.failure, reply.total_s) == (None, Failure.TIMEOUT, 20)
    assert reply.message == "no end within 20 s"


def test_a_server_that_is_too_slow():
    body = Pieces(HEL, 30, LO, DONE)
    reply = asked(httpx.Response(200, headers=STREAM, stream=body), timeout_s=20)
    assert (reply.status, reply.failure, reply.content) == (200, Failure.TIMEOUT, "Hel")
    assert body.is_closed


def test_hanging_up_after_some_time():
    body = Pieces(HEL, 30, LO, DONE)
    reply = asked(httpx.Response(200, headers=STREAM, stream=body), hang_up_after_s=5)
    assert (reply.failure, reply.total_s, reply.content) == (Failure.HUNG_UP, 5, "Hel")
    assert reply.message == "by us, after 5 s, as wanted"
    assert body.is_closed


def test_hanging_up_after_some_chunks():
    body = Pieces(HEL, 1, LO, 1, LO, DONE)
    reply = asked(
        httpx.Response(200, headers=STREAM, stream=body),
        hang_up_after_chunks=2,
    )
    assert (reply.failure, reply.total_s, reply.content) == (Failure.HUNG_UP, 1, "Hello")
    assert body.is_closed


def test_an_answer_that_is_over_before_we_hang_up():
    assert asked(streamed(HEL, DONE), hang_up_after_chunks=5, hang_up_after_s=5).is_answer


def test_the_earlier_of_two_bounds_says_what_it_was():
    assert asked(never, timeout_s=3, hang_up_after_s=5).failure is Failure.TIMEOUT
    assert Bounds(timeout_s=5, hang_up_after_s=3).wait_s == 3


def test_cancelling_closes_the_connection():
    async def go():
        body = Pieces(HEL, 30, LO)
        client, _ = client_of(lambda _request: httpx.Response(200, headers=STREAM, stream=body))
        task = asyncio.ensure_future(client.ask("a", Ask(prompt="hi")))
        await asyncio.sleep(1)
        before = body.is_closed
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return before, body.is_closed

    assert run(go()) == (False, True)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (httpx.ConnectError("refused"), Failure.CONNECT),
        (httpx.ConnectTimeout(""), Failure.CONNECT),
        (httpx.ProxyError("407"), Failure.CONNECT),
        (httpx.ReadError("reset"), Failure.CUT),
        (httpx.WriteError("reset"), Failure.CUT),
        (httpx.RemoteProtocolError("nonsense"), Failure.CUT),
        (httpx.ReadTimeout(""), Failure.TIMEOUT),
    ],
)
def test_failures_before_an_answer(error, failure):
    reply = asked(error)
    assert (reply.status, reply.failure) == (None, failure)
    assert reply.message


def test_a_connection_that_is_reset_within_an_answer():
    reply = asked(streamed(HEL, httpx.ReadError("reset")))
    assert (reply.status, reply.failure, reply.content) == (200, Failure.CUT, "Hel")


def test_tls_is_told_from_a_refused_connection():
    error = httpx.ConnectError("[SSL] certificate verify failed")
    error.__cause__ = ssl.SSLCertVerificationError(1, "certificate verify failed")
    assert trouble_of(error, str).failure is Failure.TLS
    late = httpx.ReadError("")
    late.__context__ = ssl.SSLError(1, "tlsv13 alert certificate required")
    assert trouble_of(late, str).failure is Failure.TLS


def test_a_bomb_is_not_unpacked():
    bomb = gzip.compress(bytes(64 << 20))
    reply = asked(streamed(bomb, **{"content-encoding": "gzip"}))
    assert reply.failure is Failure.TOO_LARGE
    assert reply.bytes_read == len(bomb)


def test_an_endless_answer_is_given_up():
    pieces = Pieces(*[b"[" * 65_536] * 600)
    reply = asked(httpx.Response(200, headers={"content-type": "application/json"}, stream=pieces))
    assert reply.failure is Failure.TOO_LARGE
    assert ANSWER_BYTES_MAX < reply.bytes_read <= ANSWER_BYTES_MAX + 65_536
    assert pieces.is_closed


def test_an_answer_that_is_compressed_all_the_same():
    packed = zlib.compress(HEL + LO + DONE)
    assert asked(streamed(packed[:9], packed[9:], **{"content-encoding": "deflate"})).content == "Hello"
    assert asked(streamed(b"?", **{"content-encoding": "br"})).failure is Failure.NOT_JSON


def test_an_answer_that_a_transport_has_read_already():
    answer = {"choices": [{"message": {"content": "x"}}]}
    assert asked(httpx.Response(200, json=answer)).content == "x"
