"""One job on its way back to its client: what was delivered, and what the client has not taken yet.

The buffer is bounded, so that a client who reads slowly holds back no pages: it is given up instead.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import End
from kvfence.serving.jobs import Delta, EndDelta, Job, TokenDelta
from kvfence.serving.wire import MadeToken

CLIENT_BUFFER_DELTAS_MAX = 16_384  # a client slower than this many tokens is given up


class RouterStream:
    """One job on its way: what was delivered so far, and what the client has not taken yet."""

    def __init__(self, request: int, job: Job, give_up: Callable[[int], None]) -> None:
        self.request, self.job = request, job
        self.made: list[int] = []
        self.cached_tokens = 0
        self.ended = False
        self._give_up = give_up
        self._deltas: asyncio.Queue[Delta] = asyncio.Queue()

    def cancel(self) -> None:
        """Abort; the stream still ends by an EndDelta."""
        if not self.ended:
            self._give_up(self.request)

    def __aiter__(self) -> AsyncIterator[Delta]:
        """Yield deltas up to and including the EndDelta."""
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[Delta]:
        while True:
            delta = await self._deltas.get()
            yield delta
            if isinstance(delta, EndDelta):
                return

    def put_token(self, made: MadeToken) -> bool:
        """Buffer a token. False when the client has fallen too far behind."""
        self.made.append(made.token)
        self._deltas.put_nowait(TokenDelta(made.token, made.position, made.logprobs))
        return self._deltas.qsize() < CLIENT_BUFFER_DELTAS_MAX

    def put_end(self, end: End) -> None:
        """The last delta."""
        invariant(not self.ended, "a request is finished once")
        self.ended = True
        self._deltas.put_nowait(EndDelta(end, len(self.job.tokens), len(self.made), self.cached_tokens))
