"""The choices of one request, from the router's deltas to events that an API format can write down.

Rules it keeps:
- Choices run at once; their events come interleaved, each choice's in order, and end with one Finished.
- The first choice that fails ends the request: all others are cancelled and waited for, and one ApiError is
  raised. A refusal weighs more than any other end, for it names the cause of the others.
- A stop string cancels the choice; its counts come from the EndDelta that still follows.
- Between each choice and the writer stands a bounded buffer: for a client that reads slowly, tokens wait in
  the router, which has its own bound, and no text waits here.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import EndReason
from kvfence.serving.detokenizer import Detokenizer, Piece
from kvfence.serving.errors import error_of_end
from kvfence.serving.jobs import Delta, EndDelta, JobStream, TokenDelta

EVENTS_BUFFERED_MAX = 64  # of each choice


class Observer(Protocol):
    """What the API reports about requests, for metrics. Called on the event loop; must not block."""

    def on_request(self, *, prompt_tokens: int, choices: int) -> None:
        """A request was handed to the router."""

    def on_first_token(self, seconds: float) -> None:
        """A choice's first token came, so long after the request did."""

    def on_token(self, seconds: float) -> None:
        """A further token of a choice came, so long after the one before."""

    def on_end(self, reason: str, *, seconds: float, completion_tokens: int) -> None:
        """A choice ended, so long after its request came. `reason` is an EndReason's value."""

    def on_refusal(self, code: str) -> None:
        """A request was answered with an error of this code (an ApiError's `code`)."""


class NoObserver:
    """Observes nothing."""

    def on_request(self, *, prompt_tokens: int, choices: int) -> None:
        """See Observer."""

    def on_first_token(self, seconds: float) -> None:
        """See Observer."""

    def on_token(self, seconds: float) -> None:
        """See Observer."""

    def on_end(self, reason: str, *, seconds: float, completion_tokens: int) -> None:
        """See Observer."""

    def on_refusal(self, code: str) -> None:
        """See Observer."""


@dataclass(frozen=True, slots=True)
class Spoke:
    """A choice goes on. An empty piece says only that its first token is there."""

    index: int
    piece: Piece


@dataclass(frozen=True, slots=True)
class Finished:
    """A choice is complete; `reason` is OpenAI's finish_reason."""

    index: int
    reason: str
    end: EndDelta


@dataclass(frozen=True, slots=True)
class _Failed:
    """A choice ended without a full answer."""

    index: int
    end: EndDelta


Event = Spoke | Finished


class Choice:
    """One choice: its stream, its text, its times."""

    def __init__(
        self,
        index: int,
        stream: JobStream,
        detokenizer: Detokenizer,
        *,
        observer: Observer,
        started_at: float,
        clock: Callable[[], float] = time.monotonic,
        on_token: Callable[[], None] = lambda: None,
    ) -> None:
        """`started_at` is when the request came, by `clock`; `on_token` is called for each token."""
        self.index = index
        self._stream = stream
        self._detokenizer = detokenizer
        self._observer = observer
        self._started_at = started_at
        self._clock = clock
        self._on_token = on_token
        self._token_at: float | None = None
        self._tokens = 0
        self._ended = False

    def cancel(self) -> None:
        """Abort the choice unless it is over."""
        if not self._ended:
            self._stream.cancel()

    def abandon(self) -> None:
        """Abort the choice unless it is over; nobody will read what is still to come."""
        if not self._ended:
            self._ended = True
            self._stream.cancel()
            self._report_end(EndReason.CLIENT_GONE, completion_tokens=self._tokens)

    async def events(self) -> AsyncGenerator[Event | _Failed, None]:
        """Yield the choice's events up to Finished or _Failed."""
        async for delta in self._stream:
            for event in self._step(delta):
                yield event
        invariant(self._ended, "a job's stream ends with an EndDelta")

    def _step(self, delta: Delta) -> list[Event | _Failed]:
        if isinstance(delta, EndDelta):
            return self._finish(delta)
        if self._detokenizer.stopped:
            return []  # made after the stop string, before the router heard of it
        is_first = self._note_time()
        piece = self._feed(delta)
        return [Spoke(self.index, piece)] if piece or is_first else []

    def _feed(self, delta: TokenDelta) -> Piece:
        self._tokens += 1
        self._on_token()
        piece = self._detokenizer.feed(delta.token, delta.logprobs)
        if piece.stopped:
            self._stream.cancel()
        return piece

    def _finish(self, delta: EndDelta) -> list[Event | _Failed]:
        self._ended = True
        self._report_end(delta.end.reason, completion_tokens=delta.completion_tokens)
        if self._detokenizer.stopped and delta.end.reason is not EndReason.INTEGRITY:
            return [Finished(self.index, "stop", delta)]
        if delta.end.reason not in (EndReason.STOP, EndReason.LENGTH):
            return [_Failed(self.index, delta)]
        tail = self._detokenizer.finish()
        spoken: list[Event | _Failed] = [Spoke(self.index, tail)] if tail else []
        return [*spoken, Finished(self.index, delta.end.reason.value, delta)]

    def _report_end(self, reason: EndReason, *, completion_tokens: int) -> None:
        self._observer.on_end(
            reason.value,
            seconds=self._clock() - self._started_at,
            completion_tokens=completion_tokens,
        )

    def _note_time(self) -> bool:
        """Report the time of a token; return whether it was the choice's first."""
        now, before = self._clock(), self._token_at
        self._token_at = now
        if before is None:
            self._observer.on_first_token(now - self._started_at)
            return True
        self._observer.on_token(now - before)
        return False


class Run:
    """All choices of one request."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        """There is at least one."""
        self._choices = tuple(choices)

    def cancel(self) -> None:
        """Abort every choice that is not over. May be called at any time, and twice."""
        for choice in self._choices:
            choice.cancel()

    def close(self) -> None:
        """Abort every choice that is not over, when nobody reads events any more."""
        for choice in self._choices:
            choice.abandon()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events of all choices. Raises ApiError when one failed; all have ended then."""
        failed: list[_Failed] = []
        async for event in self._merged():
            if isinstance(event, _Failed):
                if not failed:
                    self.cancel()
                failed.append(event)
            elif not failed:
                yield event
        if failed:
            raise error_of_end(min(failed, key=_weight).end.end)

    async def _merged(self) -> AsyncGenerator[Event | _Failed, None]:
        queue: asyncio.Queue[Event | _Failed | Exception] = asyncio.Queue()
        # A bound for each choice, so that one with much to say cannot keep another from its turn.
        room = {choice.index: asyncio.Semaphore(EVENTS_BUFFERED_MAX) for choice in self._choices}
        pumps = [asyncio.create_task(_pump(choice, queue, room[choice.index])) for choice in self._choices]
        running = len(pumps)
        try:
            while running:
                event = await queue.get()
                if isinstance(event, Exception):
                    raise event
                room[event.index].release()
                if not isinstance(event, Spoke):
                    running -= 1
                yield event
        finally:
            for pump in pumps:
                pump.cancel()


async def _pump(
    choice: Choice, queue: "asyncio.Queue[Event | _Failed | Exception]", room: asyncio.Semaphore
) -> None:
    try:
        async for event in choice.events():
            await room.acquire()
            queue.put_nowait(event)
    except Exception as error:  # noqa: BLE001  (handed over to whoever reads the queue, and raised there)
        queue.put_nowait(error)


def _weight(failed: _Failed) -> int:
    """Order failures, the most telling first: what ended the others comes before what they ended by."""
    reason = failed.end.end.reason
    order = (EndReason.INTEGRITY, EndReason.REFUSED)
    if reason in order:
        return order.index(reason)
    return 3 if reason is EndReason.CLIENT_GONE else 2
