"""Choices of a request: order, ends, failures, times."""

import asyncio

import pytest
from tests.serving.api_fakes import ids, tokenizer

from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import End, EndReason, IntegrityReason, Refusal, RefusalCode
from kvfence.serving.detokenizer import Detokenizer
from kvfence.serving.errors import ApiError
from kvfence.serving.jobs import EndDelta, TokenDelta
from kvfence.serving.streaming import EVENTS_BUFFERED_MAX, Choice, Finished, NoObserver, Run, Spoke

STOP = EndDelta(End(EndReason.STOP), 5, 2, 0)
GONE = EndDelta(End(EndReason.CLIENT_GONE), 5, 1, 0)


def token(text):
    return TokenDelta(ids(text)[0], 0)


class Stream:
    """Gives its deltas; after a cancel the end, whatever was left."""

    def __init__(self, *deltas, after_cancel=GONE):
        self.deltas = list(deltas)
        self.after_cancel = after_cancel
        self.cancels = 0
        self.taken = 0
        self.wake = asyncio.Event()

    def cancel(self):
        self.cancels += 1
        self.wake.set()

    async def __aiter__(self):
        for delta in self.deltas:
            if self.cancels and not isinstance(delta, EndDelta):
                continue
            self.taken += 1
            yield delta
            if isinstance(delta, EndDelta):
                return
        await self.wake.wait()
        yield self.after_cancel


class Recorder(NoObserver):
    def __init__(self):
        self.seen = []

    def on_first_token(self, seconds):
        self.seen.append(("first", seconds))

    def on_token(self, seconds):
        self.seen.append(("token", seconds))

    def on_end(self, reason, *, seconds, completion_tokens):
        self.seen.append((reason, seconds, completion_tokens))


def run_of(*streams, stops=(), observer=None, clock=lambda: 0.0):
    choices = [
        Choice(
            index,
            stream,
            Detokenizer(tokenizer(), stops),
            observer=observer or NoObserver(),
            started_at=0.0,
            clock=clock,
        )
        for index, stream in enumerate(streams)
    ]
    return Run(choices)


async def collect(run):
    return [event async for event in run.events()]


def events_of(make, **options):
    async def main():
        streams = make()
        run = run_of(*streams, **options)
        return await collect(run), streams

    return asyncio.run(main())


def test_one_choice():
    events, _ = events_of(lambda: [Stream(token(" a"), token(" b"), STOP)])
    assert [type(event) for event in events] == [Spoke, Spoke, Finished]
    assert "".join(event.piece.text for event in events[:-1]) == " a b"
    assert (events[-1].reason, events[-1].end) == ("stop", STOP)


def test_first_token_is_told_even_without_text():
    events, _ = events_of(lambda: [Stream(TokenDelta(2, 0), TokenDelta(2, 1), STOP)])
    assert [type(event) for event in events] == [Spoke, Finished]
    assert not events[0].piece


def test_choices_come_interleaved_and_in_order():
    events, _ = events_of(lambda: [Stream(*[token(" a")] * 200, STOP), Stream(token(" b"), STOP)])
    ends = [event.index for event in events if isinstance(event, Finished)]
    assert ends == [1, 0]
    assert [event.index for event in events].count(0) == 201


def test_what_was_held_back_comes_before_the_end():
    events, _ = events_of(lambda: [Stream(token(" a"), STOP)], stops=[" ab"])
    assert [getattr(getattr(event, "piece", None), "text", None) for event in events] == ["", " a", None]


def test_stop_string_cancels_and_takes_its_counts_from_the_end():
    events, (stream,) = events_of(lambda: [Stream(token(" a"), token(" b"), token(" c"))], stops=["b"])
    assert events[-1] == Finished(0, "stop", GONE)
    assert stream.cancels == 1
    assert "".join(event.piece.text for event in events[:-1]) == " a "


def test_tokens_after_a_stop_string_are_dropped():
    class Deaf(Stream):
        def cancel(self):
            """Hear nothing of it yet."""

    events, _ = events_of(lambda: [Deaf(token(" a"), token(" b"), token(" c"), STOP)], stops=["a"])
    assert [event.piece.text for event in events[:-1]] == [" "]


def failing(*streams_of, **options):
    async def main():
        streams = [make() for make in streams_of]
        with pytest.raises(ApiError) as caught:
            await collect(run_of(*streams, **options))
        return caught.value, streams

    return asyncio.run(main())


def end(reason, **more):
    return EndDelta(End(reason, **more), 5, 0, 0)


BUSY = end(EndReason.REFUSED, refusal=Refusal(RefusalCode.BUSY))


def test_failure_cancels_the_others_and_waits_for_them():
    error, streams = failing(
        lambda: Stream(token(" a")),
        lambda: Stream(end(EndReason.PEER_LOST)),
        lambda: Stream(token(" a"), STOP),
    )
    assert error.code == "peer_lost"
    assert streams[0].cancels >= 1


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("weak", "strong", "code"),
    [
        (GONE, BUSY, "busy"),
        (GONE, end(EndReason.TRANSFER), "transfer"),
        (end(EndReason.PEER_LOST), BUSY, "busy"),
        (BUSY, end(EndReason.INTEGRITY, integrity=IntegrityReason.SEAL_TORN), "integrity"),
    ],
)
def test_most_telling_failure_is_told(weak, strong, code, first):
    both = [lambda: Stream(strong), lambda: Stream(weak)]
    error, _ = failing(*(both if first else reversed(both)))
    assert error.code == code


def test_broken_stream_is_raised():
    async def main(stream, kind):
        with pytest.raises(kind):
            await collect(run_of(stream, Stream(token(" a"))))

    class Broken(Stream):
        async def __aiter__(self):
            yield token(" a")
            raise ZeroDivisionError

    class Endless(Stream):
        async def __aiter__(self):
            yield token(" a")

    asyncio.run(main(Broken(), ZeroDivisionError))
    asyncio.run(main(Endless(), InvariantError))


def test_slow_reader_buffers_a_bounded_number_of_events():
    async def main():
        stream = Stream(*[token(" a")] * 1000, STOP)
        events = run_of(stream).events()
        await anext(events)
        for _ in range(2000):
            await asyncio.sleep(0)
        assert stream.taken <= EVENTS_BUFFERED_MAX + 3
        await events.aclose()

    asyncio.run(main())


def test_close_aborts_what_is_not_over():
    async def main():
        over, open_ = Stream(token(" a"), STOP), Stream(token(" a"))
        recorder = Recorder()
        run = run_of(over, open_, observer=recorder)
        events = run.events()
        while not isinstance(await anext(events), Finished):
            pass
        await events.aclose()
        run.close()
        run.close()
        assert (over.cancels, open_.cancels) == (0, 1)
        assert [seen[0] for seen in recorder.seen if seen[0] not in {"first", "token"}] == [
            "stop",
            "client_gone",
        ]

    asyncio.run(main())


def test_times():
    times = iter([1.0, 1.5, 1.75, 2.0])
    recorder = Recorder()
    events_of(
        lambda: [Stream(token(" a"), token(" b"), token(" c"), STOP)],
        observer=recorder,
        clock=lambda: next(times),
    )
    assert recorder.seen == [("first", 1.0), ("token", 0.5), ("token", 0.25), ("stop", 2.0, 2)]
