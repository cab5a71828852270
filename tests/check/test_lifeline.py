"""The lifeline: it lets a heavy request end when others are served, and cancels it when they are not."""

import asyncio

import pytest
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.lifeline import FLOOR_S, PERIOD_S, SMALL, Lifeline
from kvfence.check.reply import Failure, Reply
from kvfence.check.stops import BudgetSpent, LifelineFailed, Since, When
from kvfence.protocol.errors import invariant


class Small:
    """A server's small answers: seconds each takes, or None for one that fails; the last one stays."""

    def __init__(self, *seconds: float | None) -> None:
        self.seconds = list(seconds)
        self.asked: list[Ask] = []

    async def __call__(self, ask: Ask) -> tuple[int, Reply]:
        self.asked.append(ask)
        takes = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        number = len(self.asked)
        if takes is None:
            return number, Reply(status=500, failure=Failure.SERVER)
        if takes > ask.timeout_s:
            await asyncio.sleep(ask.timeout_s)
            return number, Reply(status=None, failure=Failure.TIMEOUT, total_s=ask.timeout_s)
        await asyncio.sleep(takes)
        return number, Reply(status=200, total_s=takes)


class Heavy:
    """A request that takes so long, and says how it ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.was_cancelled = False

    async def __call__(self) -> Reply:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return Reply(status=200, total_s=self.seconds)


async def guard(small: Small, heavy: Heavy) -> Reply:
    lifeline = Lifeline(small)
    await lifeline.learn()
    return await lifeline.beside(heavy())


def test_a_heavy_request_ends_when_others_are_served():
    small, heavy = Small(1.0), Heavy(60.0)
    assert run(guard(small, heavy)).total_s == 60.0
    assert len(small.asked) == 3 + 10 + 1  # the baseline; one at 5, 11, … 59 s; one after


def test_the_limit_is_five_times_the_baseline_but_never_less_than_the_floor():
    async def limits() -> tuple[float | None, float | None]:
        quick, slow = Lifeline(Small(0.01)), Lifeline(Small(1.0))
        await quick.learn()
        await slow.learn()
        return quick.limit_s, slow.limit_s

    assert run(limits()) == (FLOOR_S, 5.0)


def test_a_heavy_request_is_cancelled_when_others_wait_too_long():
    small, heavy = Small(1.0, 1.0, 1.0, 30.0), Heavy(600.0)
    with pytest.raises(LifelineFailed):
        run(guard(small, heavy))
    assert heavy.was_cancelled


def test_a_heavy_request_is_cancelled_when_others_get_an_error():
    small, heavy = Small(1.0, 1.0, 1.0, None), Heavy(600.0)
    with pytest.raises(LifelineFailed, match="not answered"):
        run(guard(small, heavy))
    assert heavy.was_cancelled


def test_after_a_heavy_request_a_small_one_must_be_answered_in_time():
    small, heavy = Small(1.0, 1.0, 1.0, None), Heavy(PERIOD_S / 2)
    with pytest.raises(LifelineFailed):
        run(guard(small, heavy))
    assert not heavy.was_cancelled


def test_a_server_may_take_a_moment_to_recover():
    small, heavy = Small(1.0, 1.0, 1.0, None, 1.0), Heavy(PERIOD_S / 2)
    assert run(guard(small, heavy)).status == 200


def test_a_server_that_does_not_answer_on_its_own_has_no_lifeline():
    with pytest.raises(LifelineFailed):
        run(guard(Small(None), Heavy(1.0)))


def test_it_asks_for_sixteen_tokens():
    assert SMALL.max_tokens == 16
    assert not SMALL.is_heavy


class Queue:
    """A server with one queue: small requests wait behind the heavy one.

    `ends` says whether the heavy one ever ends by itself, `lets_go` whether closing its connection ends it.
    """

    def __init__(self, seconds: float, *, ends: bool = True, lets_go: bool = True) -> None:
        self.seconds, self.ends, self.lets_go = seconds, ends, lets_go
        self.is_free = asyncio.Event()
        self.is_free.set()
        self.asked = 0

    async def small(self, ask: Ask) -> tuple[int, Reply]:
        self.asked += 1
        number, began = self.asked, asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(ask.timeout_s):
                await self.is_free.wait()
                await asyncio.sleep(0.1)
        except TimeoutError:
            return number, Reply(status=None, failure=Failure.TIMEOUT, total_s=ask.timeout_s)
        return number, Reply(status=200, total_s=asyncio.get_running_loop().time() - began)

    async def heavy(self) -> Reply:
        self.is_free.clear()
        loop = asyncio.get_running_loop()
        end = loop.call_later(self.seconds, self.is_free.set) if self.ends else None
        try:
            await self.is_free.wait()
        except asyncio.CancelledError:
            if self.lets_go:
                self.is_free.set()
            raise
        invariant(end is not None, "only what ends gets here")
        return Reply(status=200, total_s=self.seconds)


def held_up(queue: Queue, *, is_patient: bool, expected_s: float | None = None) -> Reply | LifelineFailed:
    """What became of one heavy request."""

    async def go():
        lifeline = Lifeline(queue.small, is_patient=is_patient)
        await lifeline.learn()
        try:
            return await lifeline.beside(queue.heavy(), expected_s=expected_s)
        except LifelineFailed as failed:
            return failed

    return run(go())


def test_on_ones_own_server_small_requests_may_wait_for_as_long_as_reading_takes():
    reply = held_up(Queue(90.0), is_patient=True, expected_s=60.0)
    assert reply.status == 200


def test_on_ones_own_server_half_a_minute_is_always_waited_for():
    assert held_up(Queue(25.0), is_patient=True).status == 200


def test_on_somebody_elses_server_nobody_waits_that_long():
    failed = held_up(Queue(90.0), is_patient=False, expected_s=60.0)
    assert (failed.when, failed.since) == (When.EARLY, Since.IN_TIME)


def test_a_server_of_ones_own_that_never_comes_back_has_hung():
    failed = held_up(Queue(0.0, ends=False, lets_go=False), is_patient=True, expected_s=60.0)
    assert (failed.when, failed.since) == (When.LATE, Since.SILENT)


def test_a_server_that_holds_others_up_until_the_connection_is_closed_has_hung_too():
    failed = held_up(Queue(0.0, ends=False), is_patient=True, expected_s=60.0)
    assert (failed.when, failed.since) == (When.LATE, Since.IN_TIME)


def test_early_or_not_a_server_that_stays_silent_is_seen():
    failed = held_up(Queue(0.0, ends=False, lets_go=False), is_patient=False, expected_s=60.0)
    assert (failed.when, failed.since) == (When.EARLY, Since.SILENT)


def test_a_server_that_reads_on_after_its_client_has_left_is_not_taken_for_a_silent_one():
    failed = held_up(Queue(100.0, lets_go=False), is_patient=False, expected_s=110.0)
    assert (failed.when, failed.since) == (When.EARLY, Since.IN_TIME)


def test_slow_is_not_silent():
    async def go():
        lifeline = Lifeline(Small(0.1, 0.1, 0.1, 50.0))
        await lifeline.learn()
        await lifeline.beside(Heavy(1.0)(), expected_s=60.0)

    with pytest.raises(LifelineFailed) as failed:
        run(go())
    assert (failed.value.when, failed.value.since) == (When.AFTERWARDS, Since.SLOW)


@pytest.mark.parametrize(("expected_s", "when"), [(None, When.LATE), (6.0, When.LATE), (60.0, When.EARLY)])
def test_a_failure_within_the_time_that_reading_takes_is_marked(expected_s, when):
    async def go():
        lifeline = Lifeline(Small(0.1, 0.1, 0.1, 50.0))
        await lifeline.learn()
        await lifeline.beside(Heavy(90.0)(), expected_s=expected_s)

    with pytest.raises(LifelineFailed) as failed:
        run(go())
    assert failed.value.when is when


@pytest.mark.parametrize(("patience", "since"), [(1.0, Since.SILENT), (5.0, Since.SLOW)])
def test_a_server_that_is_given_longer_is_slow_where_another_is_silent(patience: float, since: Since):
    small = Small(0.1, 0.1, 0.1, 200.0)

    async def go():
        lifeline = Lifeline(small, patience=patience)
        await lifeline.learn()
        await lifeline.beside(Heavy(1.0)())

    with pytest.raises(LifelineFailed) as failed:
        run(go())
    assert failed.value.since is since
    assert [ask.timeout_s for ask in small.asked] == [60 * patience] * 3 + [FLOOR_S] * 3 + [60 * patience]


def test_a_budget_that_is_spent_while_it_looks_again_takes_nothing_back():
    small = Small(0.1, 0.1, 0.1, 50.0)

    async def go():
        async def ask(asked: Ask) -> tuple[int, Reply]:
            if len(small.asked) == 4:
                raise BudgetSpent("no request is left")
            return await small(asked)

        lifeline = Lifeline(ask)
        await lifeline.learn()
        await lifeline.beside(Heavy(90.0)())

    with pytest.raises(LifelineFailed) as failed:
        run(go())
    assert (failed.value.when, failed.value.since) == (When.LATE, Since.UNSEEN)
