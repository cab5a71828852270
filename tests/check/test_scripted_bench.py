"""The scripted bench: it keeps what is asked, waits in virtual time, and stops at a foreign marker."""

import asyncio

import pytest
from tests.check.scripted_bench import ScriptedBench, answered
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.stops import ForeignMarkerSeen


def test_what_is_asked_at_once_is_seen_at_once_and_waits_for_its_reply():
    bench = ScriptedBench(lambda sent: answered(sent.text.upper(), total_s=2.0))

    async def two():
        began = asyncio.get_running_loop().time()
        replies = await asyncio.gather(
            bench.ask("a", Ask(prompt="one")), bench.ask("b", Ask(prompt="two two"))
        )
        return replies, asyncio.get_running_loop().time() - began

    replies, seconds = run(two())
    assert [reply.content for reply in replies] == ["ONE", "TWO TWO"]
    assert seconds == 2.0
    assert bench.most_at_once == 2
    assert (bench.used.requests, bench.used.prompt_tokens) == (2, 3)


def test_a_marker_comes_back_to_its_owner_alone():
    bench = ScriptedBench(lambda sent: answered(bench.markers[0].text))
    marker = bench.mint("a")
    assert run(bench.ask("a", Ask(prompt="x"), own=(marker,))).content == marker.text
    with pytest.raises(ForeignMarkerSeen):
        run(bench.ask("b", Ask(prompt="x")))
    bench.forget(marker)
    assert bench.markers == []
