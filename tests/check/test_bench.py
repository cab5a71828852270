"""The bench: every request is counted, recorded and searched; a heavy one has the lifeline beside it."""

import asyncio
from dataclasses import replace

import pytest
from tests.check.lone import KNOWN, FunctionClient, said, session_of
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.bench import LiveBench, Session
from kvfence.check.budget import Limits
from kvfence.check.known import Known, Need
from kvfence.check.reply import Failure, Reply, Text
from kvfence.check.scenario import Size
from kvfence.check.stops import BudgetSpent, ForeignMarkerSeen, LifelineFailed
from kvfence.protocol.errors import InvariantError
from kvfence.report import Answered, CapabilityLearned, Noted


def bench_of(session: Session, scenario: str = "test") -> LiveBench:
    return LiveBench(session, scenario=scenario, size=Size(), seed="1")


def events_of(session: Session) -> list:
    return session.emit.__self__


def test_a_request_is_recorded_without_any_text():
    async def play():
        session = session_of(FunctionClient(lambda _tenant, _ask: said("hello")))
        reply = await bench_of(session).ask("anna", Ask(prompt="hi", mark="control", prompt_tokens=2))
        return reply, events_of(session)

    reply, events = run(play())
    assert reply.content == "hello"
    (answered,) = events
    assert isinstance(answered, Answered)
    assert (answered.scenario, answered.request, answered.tenant, answered.mark) == (
        "test",
        1,
        "anna",
        "control",
    )
    assert (answered.status, answered.expected_prompt_tokens) == (200, 2)
    assert "hello" not in repr(answered)


@pytest.mark.parametrize("place", ["content", "reasoning", "tool", "logprob", "error", "header"])
def test_a_foreign_marker_in_any_text_stops_the_run_and_the_reply_goes_nowhere(place: str):
    async def play():
        client = FunctionClient(lambda _tenant, _ask: said(marker.text, place))
        session = session_of(client)
        bench = bench_of(session)
        marker = bench.mint("berta")
        try:
            await bench.ask("anna", Ask(prompt="hi"))
        except ForeignMarkerSeen as seen:
            return seen, marker, events_of(session)
        return None

    seen, marker, events = run(play())
    assert seen.hits[0].marker == marker
    assert len(events) == 1


def test_ones_own_marker_may_come_back():
    async def play():
        client = FunctionClient(lambda _tenant, ask: said(ask.prompt))
        bench = bench_of(session_of(client))
        marker = bench.mint("anna")
        return await bench.ask("anna", Ask(prompt=f"Say {marker.text}"), own=(marker,))

    assert run(play()).status == 200


def test_a_marker_that_was_retired_proves_nothing():
    async def play():
        client = FunctionClient(lambda _tenant, _ask: said(marker.text))
        bench = bench_of(session_of(client))
        marker = bench.mint("berta")
        bench.forget(marker)
        return await bench.ask("anna", Ask(prompt="hi"))

    assert run(play()).status == 200


def test_a_marker_that_is_split_over_texts_of_one_choice_is_found():
    async def play():
        def answer(_tenant: str, _ask: Ask) -> Reply:
            half = len(marker.text) // 2
            texts = (Text("content", marker.text[:half]), Text("content", marker.text[half:]))
            return Reply(status=200, texts=texts)

        bench = bench_of(session_of(FunctionClient(answer)))
        marker = bench.mint("berta")
        with pytest.raises(ForeignMarkerSeen):
            await bench.ask("anna", Ask(prompt="hi"))

    run(play())


def test_a_spent_budget_sends_nothing():
    async def play():
        client = FunctionClient(lambda _tenant, _ask: said("x"))
        bench = bench_of(session_of(client, limits=Limits(requests=1)))
        await bench.ask("anna", Ask(prompt="hi"))
        with pytest.raises(BudgetSpent):
            await bench.ask("anna", Ask(prompt="hi"))
        return client.asked

    assert len(run(play())) == 1


def test_heavy_requests_go_one_after_another():
    at_once = []

    async def slow(_tenant: str, _ask: Ask) -> Reply:
        at_once.append(1)
        most.append(len(at_once))
        await asyncio.sleep(1)
        at_once.pop()
        return said("x")

    async def play():
        bench = bench_of(session_of(FunctionClient(slow)))
        heavy = Ask(prompt="long", is_heavy=True)
        await asyncio.gather(*(bench.ask("anna", heavy) for _ in range(3)))

    most: list[int] = []
    run(play())
    assert most == [1, 1, 1]


def test_requests_that_are_not_heavy_go_at_once():
    async def slow(_tenant: str, _ask: Ask) -> Reply:
        await asyncio.sleep(1)
        return said("x")

    async def play():
        bench = bench_of(session_of(FunctionClient(slow)))
        await asyncio.gather(*(bench.ask("anna", Ask(prompt="x")) for _ in range(3)))
        return asyncio.get_running_loop().time()

    assert run(play()) == 1


def test_a_heavy_request_is_cancelled_when_the_lifeline_fails():
    async def forever(_tenant: str, _ask: Ask) -> Reply:
        await asyncio.sleep(10_000)
        return said("never")

    answers = [said("a"), said("b"), said("c")]
    dead = Reply(status=500, failure=Failure.SERVER)

    async def play():
        client = FunctionClient(forever)
        session = session_of(client, small=lambda _tenant, _ask: answers.pop() if answers else dead)
        with pytest.raises(LifelineFailed):
            await bench_of(session).ask("anna", Ask(prompt="long", is_heavy=True))
        return client, events_of(session)

    client, events = run(play())
    assert client.cancelled == 1
    assert [event.failure for event in events if event.mark == "probe"] == ["hung up"]


@pytest.mark.parametrize(
    ("known", "status"),
    [
        (KNOWN, None),
        (replace(KNOWN, is_loopback=True), 200),
        (replace(KNOWN, has=frozenset({Need.OWN_SERVER})), 200),
    ],
)
def test_on_ones_own_server_the_lifeline_is_patient(known: Known, status: int | None):
    """A server with one queue, which reads a long prompt for twenty seconds."""

    async def play():
        busy = asyncio.Lock()

        async def answer(_tenant: str, ask: Ask) -> Reply:
            async with busy:
                await asyncio.sleep(20 if ask.is_heavy else 0.1)
            return said("x")

        async def small(tenant: str, ask: Ask) -> Reply:
            try:
                async with asyncio.timeout(ask.timeout_s):
                    return await answer(tenant, ask)
            except TimeoutError:
                return Reply(status=None, failure=Failure.TIMEOUT)

        session = session_of(FunctionClient(answer), small=small)
        session.known = known
        try:
            return (await bench_of(session).ask("anna", Ask(prompt="long", is_heavy=True))).status
        except LifelineFailed:
            return None

    assert run(play()) == status


def test_what_is_left_in_flight_is_cancelled_at_the_end():
    async def forever(_tenant: str, _ask: Ask) -> Reply:
        await asyncio.sleep(10_000)
        return said("never")

    async def play():
        client = FunctionClient(forever)
        bench = bench_of(session_of(client))
        task = asyncio.ensure_future(bench.ask("anna", Ask(prompt="x")))
        await asyncio.sleep(1)
        await bench.close()
        await asyncio.gather(task, return_exceptions=True)
        return client.cancelled, task.cancelled()

    assert run(play()) == (1, True)


def test_random_numbers_come_again_by_the_seed_and_differ_between_scenarios():
    async def play():
        session = session_of(FunctionClient(lambda _tenant, _ask: said("x")))
        return [bench_of(session, name).random.random() for name in ("one", "one", "two")]

    first, again, other = run(play())
    assert first == again != other


def test_a_note_names_its_scenario():
    async def play():
        session = session_of(FunctionClient(lambda _tenant, _ask: said("x")))
        bench_of(session).note("nothing to see", is_warning=True)
        return events_of(session)

    (noted,) = run(play())
    assert noted == Noted(at_s=0.0, text="test: nothing to see", is_warning=True)


def test_a_figure_that_was_learned_is_an_event():
    async def play():
        session = session_of(FunctionClient(lambda _tenant, _ask: said("x")))
        bench_of(session).learned("clock.a", 0.5, "a fit")
        return events_of(session)

    assert run(play()) == [CapabilityLearned(at_s=0.0, name="clock.a", value=0.5, how="a fit")]


def test_a_tenant_that_is_not_there_is_our_own_mistake():
    async def play():
        await bench_of(session_of(FunctionClient(lambda _tenant, _ask: said("x")))).ask(
            "carla", Ask(prompt="x")
        )

    with pytest.raises(InvariantError):
        run(play())
