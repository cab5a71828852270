"""The lifeline: it lets a heavy request end when others are served, and cancels it when they are not."""

import asyncio

import pytest
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.lifeline import FLOOR_S, PERIOD_S, SMALL, Lifeline
from kvfence.check.reply import Failure, Reply
from kvfence.check.stops import LifelineFailed


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


@pytest.mark.parametrize(("expected_s", "is_early"), [(None, False), (6.0, False), (60.0, True)])
def test_a_failure_within_the_time_that_reading_takes_is_marked(expected_s, is_early):
    async def go():
        lifeline = Lifeline(Small(0.1, 0.1, 0.1, 50.0))
        await lifeline.learn()
        await lifeline.beside(Heavy(90.0)(), expected_s=expected_s)

    with pytest.raises(LifelineFailed) as failed:
        run(go())
    assert failed.value.is_early is is_early


def test_a_failure_after_the_answer_is_never_early():
    async def go():
        lifeline = Lifeline(Small(0.1, 0.1, 0.1, 50.0))
        await lifeline.learn()
        await lifeline.beside(Heavy(1.0)(), expected_s=60.0)

    with pytest.raises(LifelineFailed) as failed:
        run(go())
    assert not failed.value.is_early
