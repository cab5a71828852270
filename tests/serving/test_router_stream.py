"""One job's way back: deltas in order, one end, a bounded buffer."""

import asyncio

import pytest

from kvfence.engine.sampling import SamplingParams
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import AttemptId, End, EndReason
from kvfence.serving.jobs import EndDelta, Job, TokenDelta
from kvfence.serving.router_stream import CLIENT_BUFFER_DELTAS_MAX, RouterStream
from kvfence.serving.wire import MadeToken

JOB = Job("r-0", "t", "d", (1, 2, 3), 4, SamplingParams(seed=1))
STOP = End(EndReason.STOP)


@pytest.fixture
def given_up():
    return []


@pytest.fixture
def stream(given_up):
    return RouterStream(7, JOB, given_up.append)


def made(token, position):
    return MadeToken(AttemptId(1, 7, 1), token, position)


def test_deltas_come_in_order_and_the_end_is_the_last(stream):
    async def read():
        return [delta async for delta in stream]

    assert stream.put_token(made(10, 3))
    assert stream.put_token(made(11, 4))
    stream.cached_tokens = 2
    stream.put_end(STOP)
    assert asyncio.run(read()) == [TokenDelta(10, 3), TokenDelta(11, 4), EndDelta(STOP, 3, 2, 2)]


def test_a_stream_ends_once(stream):
    stream.put_end(STOP)
    with pytest.raises(InvariantError, match="finished once"):
        stream.put_end(STOP)


def test_cancelling_gives_the_request_up_unless_it_is_over(stream, given_up):
    stream.cancel()
    assert given_up == [7]
    stream.put_end(STOP)
    stream.cancel()
    assert given_up == [7]


def test_a_client_that_falls_too_far_behind_is_seen(stream):
    kept_up = [stream.put_token(made(1, 3 + number)) for number in range(CLIENT_BUFFER_DELTAS_MAX)]
    assert all(kept_up[:-1])
    assert not kept_up[-1]
