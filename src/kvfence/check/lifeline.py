"""The lifeline: a small request, again and again, that shows whether the server still answers others.

Rules it keeps:
- It has a connection of its own, and asks for 16 tokens, every five seconds while a heavy request runs.
- It fails when a request of it fails, or takes more than five times what it took on the quiet server
  (and more than two seconds: nobody is harmed by a jump from ten milliseconds to sixty).
- A patient one is for the user's own server, where nobody else waits: there a small request may queue behind
  the heavy one for twice as long as reading that takes, and half a minute in any case. One request is its
  baseline: nobody is harmed by a limit that is a little off.
- When it fails, the heavy request is cancelled, which closes its connection. Nothing is sent again. Then it
  looks whether small requests are answered again, for as long as the server may honestly go on reading.
- After each heavy request one more small one must come back in time before the next thing is asked.
"""

import asyncio
import dataclasses
import statistics
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from kvfence.check.asks import TIMEOUT_S, Ask
from kvfence.check.reply import Reply
from kvfence.check.stops import BudgetSpent, LifelineFailed, Since, When
from kvfence.protocol.errors import unreachable

PERIOD_S = 5.0
TIMES_BASELINE = 5.0
FLOOR_S = 2.0
BASELINE_REQUESTS = 3
BASELINE_REQUESTS_PATIENT = 1
RECOVERY_TRIES = 3
PATIENT_TIMES = 2.0
PATIENT_S_MIN = 30.0

SMALL = Ask(
    prompt="Count from one to twelve in words.",
    mark="lifeline",
    max_tokens=16,
    prompt_tokens=24,
    timeout_s=TIMEOUT_S,  # when nothing is known yet, and of the last one that is tried
)


class Lifeline:
    """Guards heavy requests. `small` sends one small request and returns its reply and its number.

    `patience` is how many times longer than usual this server is waited for.
    """

    def __init__(
        self,
        small: Callable[[Ask], Awaitable[tuple[int, Reply]]],
        *,
        is_patient: bool = False,
        patience: float = 1.0,
    ) -> None:
        self._small = small
        self._is_patient = is_patient
        self._patience = patience
        self.limit_s: float | None = None

    async def learn(self) -> None:
        """Measure the quiet server. Raises LifelineFailed when not even that works."""
        times = []
        for _ in range(BASELINE_REQUESTS_PATIENT if self._is_patient else BASELINE_REQUESTS):
            number, reply = await self._small(_given(TIMEOUT_S * self._patience))
            if not reply.is_answer:
                raise LifelineFailed(_failed(reply), request=number, when=When.BEFORE)
            times.append(reply.total_s)
        self.limit_s = max(TIMES_BASELINE * statistics.median(times), FLOOR_S)

    async def beside(self, heavy: Coroutine[Any, Any, Reply], *, expected_s: float | None = None) -> Reply:
        """Run a heavy request; cancel it and raise LifelineFailed when the lifeline fails first.

        `expected_s` is how long the request may honestly take: until then a server may go on reading it even
        after its connection was closed.
        """
        began_s = _now_s()
        honest_s = began_s + (expected_s or 0.0)
        request = asyncio.ensure_future(heavy)
        watch = asyncio.ensure_future(self._watch(self._patient_until_s(began_s, expected_s)))
        failed: LifelineFailed | None = None
        try:
            await asyncio.wait((request, watch), return_when=asyncio.FIRST_COMPLETED)
            if watch.done() and not request.done():
                failed = watch.result()
                failed.when = When.EARLY if _now_s() < honest_s else When.LATE
        finally:
            await _cancelled(request, watch)
        if failed is not None:
            try:
                failed.since, _ = await self._looked_again(honest_s)
            except BudgetSpent:
                failed.since = Since.UNSEEN
            raise failed
        reply = request.result()
        since, last = await self._looked_again(_now_s())
        if last is not None:
            last.when, last.since = When.AFTERWARDS, since
            raise last
        return reply

    def _patient_until_s(self, began_s: float, expected_s: float | None) -> float:
        """Until when a small request may be late: on somebody else's server it may not be."""
        if not self._is_patient:
            return began_s
        return began_s + max(PATIENT_TIMES * (expected_s or 0.0), PATIENT_S_MIN * self._patience)

    async def _watch(self, patient_until_s: float) -> LifelineFailed:
        """Ask until a small request fails, and return that. Ended by being cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            failed = await self._tried(self._limit_s + max(patient_until_s - _now_s(), 0.0))
            if failed is not None:
                return failed

    async def _looked_again(self, honest_s: float) -> tuple[Since, LifelineFailed | None]:
        """Look whether a small request is answered in time again; what it came to, and the last failure.

        Tried some times, and until `honest_s` in any case. The last one is waited for: slow is not silent.
        """
        failed = await self._tried(self._limit_s)
        tries = 1
        while failed is not None and (tries < RECOVERY_TRIES or _now_s() < honest_s):
            await asyncio.sleep(PERIOD_S)
            failed = await self._tried(self._limit_s)
            tries += 1
        if failed is None:
            return Since.IN_TIME, None
        is_answered = await self._tried(TIMEOUT_S * self._patience) is None
        return Since.SLOW if is_answered else Since.SILENT, failed

    @property
    def _limit_s(self) -> float:
        if self.limit_s is None:
            unreachable("a lifeline knows the quiet server before it guards anything")
        return self.limit_s

    async def _tried(self, limit_s: float) -> LifelineFailed | None:
        """One small request. What was wrong with it, None if it was answered in time."""
        number, reply = await self._small(_given(limit_s))
        if not reply.is_answer:
            return LifelineFailed(_failed(reply), request=number)
        if reply.total_s <= limit_s:
            return None
        what = f"a request for 16 tokens took {reply.total_s:.1f} s; {limit_s:.1f} s were the limit"
        return LifelineFailed(what, request=number)


def _given(timeout_s: float) -> Ask:
    return dataclasses.replace(SMALL, timeout_s=timeout_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _failed(reply: Reply) -> str:
    why = reply.message or reply.failure
    return f"a request for 16 tokens was not answered: {why}"


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs, and wait for its end: a connection is closed when this returns."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
