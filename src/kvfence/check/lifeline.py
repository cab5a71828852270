"""The lifeline: a small request, again and again, that shows whether the server still answers others.

Rules it keeps:
- It has a connection of its own, and asks for 16 tokens, every five seconds while a heavy request runs.
- It fails when a request of it fails, or takes more than five times what it took on the quiet server
  (and more than two seconds: nobody is harmed by a jump from ten milliseconds to sixty).
- When it fails, the heavy request is cancelled, which closes its connection. Nothing is sent again.
- After each heavy request one more small one must come back in time before the next thing is asked.
"""

import asyncio
import dataclasses
import statistics
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from kvfence.check.asks import Ask
from kvfence.check.reply import Reply
from kvfence.check.stops import LifelineFailed

PERIOD_S = 5.0
TIMES_BASELINE = 5.0
FLOOR_S = 2.0
BASELINE_REQUESTS = 3
RECOVERY_TRIES = 3
TIMEOUT_S = 60.0  # of one small request, when nothing is known yet

SMALL = Ask(
    prompt="Count from one to twelve in words.",
    mark="lifeline",
    max_tokens=16,
    prompt_tokens=24,
    timeout_s=TIMEOUT_S,
)


class Lifeline:
    """Guards heavy requests. `small` sends one small request and returns its reply and its number."""

    def __init__(self, small: Callable[[Ask], Awaitable[tuple[int, Reply]]]) -> None:
        self._small = small
        self.limit_s: float | None = None

    async def learn(self) -> None:
        """Measure the quiet server. Raises LifelineFailed when not even that works."""
        times = []
        for _ in range(BASELINE_REQUESTS):
            number, reply = await self._small(SMALL)
            if not reply.is_answer:
                raise LifelineFailed(_failed(reply), request=number)
            times.append(reply.total_s)
        self.limit_s = max(TIMES_BASELINE * statistics.median(times), FLOOR_S)

    async def beside(self, heavy: Coroutine[Any, Any, Reply], *, expected_s: float | None = None) -> Reply:
        """Run a heavy request; cancel it and raise LifelineFailed when the lifeline fails first.

        `expected_s` is how long the request may honestly take: a failure before that is marked as early.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        request = asyncio.ensure_future(heavy)
        watch = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait((request, watch), return_when=asyncio.FIRST_COMPLETED)
            if watch.done() and not request.done():
                _raise_failure(watch, is_early=loop.time() - began_s < (expected_s or 0.0))
        finally:
            await _cancelled(request, watch)
        reply = request.result()
        await self._recovered()
        return reply

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            await self._in_time()

    async def _recovered(self) -> None:
        """Wait until a small request is answered in time again."""
        for attempt in range(RECOVERY_TRIES):
            try:
                await self._in_time()
            except LifelineFailed:
                if attempt == RECOVERY_TRIES - 1:
                    raise
                await asyncio.sleep(PERIOD_S)
            else:
                return

    async def _in_time(self) -> None:
        if self.limit_s is None:
            await self.learn()
            return
        ask = dataclasses.replace(SMALL, timeout_s=self.limit_s)
        number, reply = await self._small(ask)
        if not reply.is_answer:
            raise LifelineFailed(_failed(reply), request=number)
        if reply.total_s > self.limit_s:
            what = f"a request for 16 tokens took {reply.total_s:.1f} s; {self.limit_s:.1f} s were the limit"
            raise LifelineFailed(what, request=number)


def _raise_failure(watch: asyncio.Future[Any], *, is_early: bool) -> None:
    """Raise what ended the watch."""
    try:
        watch.result()
    except LifelineFailed as failed:
        failed.is_early = is_early
        raise


def _failed(reply: Reply) -> str:
    why = reply.message or reply.failure
    return f"a request for 16 tokens was not answered: {why}"


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs, and wait for its end: a connection is closed when this returns."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
