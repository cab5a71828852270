"""Requests at once: all of them, or the first thing that stops the run.

Rules it keeps: results come in the order of the coroutines; when one raises, the others are cancelled and
have ended before the error goes on; the error goes on bare, not in a group.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from kvfence.check.stops import first_stop

T = TypeVar("T")


async def together(what: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all at once and return their results."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in what]
    except BaseExceptionGroup as errors:
        stop = first_stop(errors)
        if stop is None:
            raise
        raise stop from errors
    return [task.result() for task in tasks]
