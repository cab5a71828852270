"""Virtual time: an event loop whose clock jumps to the next thing that is due. Nothing in such a test sleeps."""

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any

import looptime


def run(what: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end; an hour of its waiting takes no time."""
    # Time moves as soon as nothing is ready: cycles without an event before it would change nothing but cost.
    loop_factory = functools.partial(looptime.new_event_loop, noop_cycles=0)
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(what)


def test_an_hour_takes_no_time():
    async def wait() -> float:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await asyncio.sleep(3_600)
        return loop.time() - before

    assert run(wait()) == 3_600
