"""Requests at once: results in order, or the first thing that stops the run, bare."""

import asyncio

import pytest
from tests.check.virtual import run

from kvfence.check.stops import BudgetSpent
from kvfence.check.together import together


async def after(seconds: float, value: str) -> str:
    await asyncio.sleep(seconds)
    return value


async def fails(seconds: float, error: Exception) -> str:
    await asyncio.sleep(seconds)
    raise error


def test_results_come_in_the_order_of_the_requests():
    assert run(together([after(3, "a"), after(1, "b")])) == ["a", "b"]


def test_a_stop_comes_out_bare_and_the_others_have_ended():
    ended = []

    async def waits() -> str:
        try:
            return await after(60, "late")
        finally:
            ended.append("cancelled")

    with pytest.raises(BudgetSpent):
        run(together([waits(), fails(1, BudgetSpent("enough"))]))
    assert ended == ["cancelled"]


def test_a_defect_of_ours_stays_a_group():
    with pytest.raises(ExceptionGroup):
        run(together([fails(1, ValueError("ours"))]))
