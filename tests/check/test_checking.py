"""One check from the probe to the last verdict, on fakes in virtual time."""

import dataclasses

import pytest
from tests.check.fake.app import FakeApp
from tests.check.fake.clock import Clock
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.transport import FakeTransport
from tests.check.test_plan import scenario
from tests.check.to_fake import fake_target
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.budget import Limits
from kvfence.check.capability import TargetUnreachable
from kvfence.check.checking import Wishes, check_target, for_one_of_several
from kvfence.check.credentials import Redactor
from kvfence.check.profiles import QUICK, profile_named
from kvfence.check.resume import Resumed
from kvfence.check.scenario import Outcome
from kvfence.report import CapabilityLearned, Cost, Noted, RunStarted, ScenarioEnded, ScenarioStarted, Verdict

CALM = Outcome(verdict=Verdict.NO_EVIDENCE, why="quiet", opportunities=30, sensitivity=1.0, co_residence=1.0)
WISHES = Wishes(profile=QUICK, seed=7, run_id="r1")
SLOW = dataclasses.replace(WISHES, limits=Limits(seconds=7_200))
STARTED = RunStarted(tool="check", version="0", run="r1", started="", targets=("t",), seed=7, profile="quick")


def asking(name: str, outcome: Outcome = CALM):
    async def ask(bench):
        await bench.ask(bench.tenants[-1], Ask(prompt=f"Say {bench.random.random()}", prompt_tokens=9))
        return outcome

    return dataclasses.replace(scenario(name, is_in_quick=True), run=ask)


async def check(
    wishes: Wishes = WISHES, *, scenarios=None, tenants=("a",), apps=None, plans=None, target=None, **setup
):
    events: list = []
    server = FakeServer(Setup(**setup))
    ended = await check_target(
        target or fake_target(*tenants),
        wishes,
        scenarios or (asking("one"), asking("two")),
        events.append,
        redactor=Redactor(),
        show_plan=lambda plan, *_: (plans if plans is not None else []).append(plan),
        transport=FakeTransport(server.app if apps is None else apps),
    )
    return ended, events, server


def of(kind: type, events: list) -> list:
    return [event for event in events if isinstance(event, kind)]


def test_a_probe_then_a_plan_then_the_scenarios():
    plans: list = []
    ended, events, _ = run(check(plans=plans))
    assert [one.scenario.name for one in ended] == ["one", "two"]
    kinds = [type(event) for event in events]
    assert kinds.index(CapabilityLearned) < kinds.index(ScenarioStarted)
    assert [chosen.scenario.name for chosen in plans[0].chosen] == ["one", "two"]


def test_a_plan_alone_asks_nothing_of_a_scenario():
    wishes = dataclasses.replace(WISHES, is_plan_only=True)
    plans: list = []
    ended, events, _ = run(check(wishes, plans=plans))
    assert ended == ()
    assert len(plans) == 1
    assert not of(ScenarioStarted, events)


def test_one_credential_is_said_to_have_run_as_one():
    _, events, _ = run(check())
    assert any("one credential" in note.text for note in of(Noted, events))


def test_two_credentials_are_not():
    _, events, _ = run(check(tenants=("a", "b")))
    assert not any("one credential" in note.text for note in of(Noted, events))


def test_nobody_there_is_raised_for_the_caller():
    with pytest.raises(TargetUnreachable):
        run(check(apps={}))


def test_a_run_that_goes_on_leaves_out_what_was_done():
    resumed = Resumed(
        started=STARTED, done=frozenset({"one"}), used=Cost(requests=40), requests=40, at_s=100.0
    )
    wishes = dataclasses.replace(WISHES, resumed=resumed, limits=Limits(seconds=1_000.0, requests=145))
    ended, events, _ = run(check(wishes))
    assert [one.scenario.name for one in ended] == ["two"]
    (end,) = of(ScenarioEnded, events)
    assert end.at_s > 100.0


def test_what_was_used_before_counts_in_a_run_that_goes_on():
    """What the probe takes, and one request more than what is left."""
    alone = len(probe_of(dataclasses.replace(WISHES, is_plan_only=True))[0])
    for used, verdicts in ((0, {Verdict.NO_EVIDENCE}), (9, {Verdict.INCONCLUSIVE, Verdict.NOT_TESTED})):
        resumed = Resumed(
            started=STARTED, done=frozenset(), used=Cost(requests=used), requests=used, at_s=0.0
        )
        wishes = dataclasses.replace(WISHES, resumed=resumed, limits=Limits(requests=alone + 9))
        ended, _, _ = run(check(wishes))
        assert {one.outcome.verdict for one in ended} == verdicts


def probe_of(wishes: Wishes):
    """The bodies of the requests that a probe sends, and what the check says."""
    server, seen = FakeServer(Setup()), []

    async def handle(request):
        seen.append(request.body)
        return await server.handle(request)

    ended, events, _ = run(check(wishes, apps=FakeApp(handle)))
    return seen, ended, events


def test_the_probes_texts_come_from_the_seed():
    only = dataclasses.replace(WISHES, is_plan_only=True)
    first, again = (probe_of(only)[0] for _ in range(2))
    other, *_ = probe_of(dataclasses.replace(only, seed=8))
    assert first == again
    assert first != other
    assert first


def test_the_probes_requests_are_part_of_the_budget():
    seen, ended, events = probe_of(dataclasses.replace(WISHES, limits=Limits(requests=5)))
    assert len(seen) == 5
    assert {one.outcome.verdict for one in ended} == {Verdict.NOT_TESTED}
    assert any("spent before the server was known" in note.text for note in of(Noted, events))


def test_a_soak_goes_round_until_its_hours_are_over():
    wishes = dataclasses.replace(WISHES, profile=profile_named("soak", 0.001))
    ended, events, _ = run(check(wishes))
    names = [event.scenario for event in of(ScenarioEnded, events)]
    assert names[:4] == ["one", "two", "one (round 2)", "two (round 2)"]
    assert len(ended) == len(names)


def test_a_soak_that_has_found_something_goes_round_no_more():
    wishes = dataclasses.replace(WISHES, profile=profile_named("soak", 0.001))
    telling = dataclasses.replace(CALM, verdict=Verdict.UNREAD)
    _, events, _ = run(check(wishes, scenarios=(asking("one", telling), asking("two"))))
    assert [event.scenario for event in of(ScenarioEnded, events)] == ["one", "two"]


def test_limits_of_the_user_stand_before_others():
    assert Limits(requests=5).over(Limits(requests=9, tokens=7)) == Limits(requests=5, tokens=7)
    assert Limits(requests=5, money=0.5).told == {"requests": 5, "money": 0.5}
    assert Limits().told == {}


def test_one_of_several_targets_is_named_behind_its_scenarios():
    events: list = []
    emit = for_one_of_several(events.append, fake_target("a"))
    emit(ScenarioEnded(scenario="one", verdict=Verdict.LEAK, why=""))
    emit(Noted(text="hello"))
    assert (events[0].scenario, events[1].text) == ("one at fake", "hello")


@pytest.mark.parametrize(("request_timeout_s", "is_answer"), [(60.0, False), (300.0, True)])
def test_a_slow_target_is_given_longer(request_timeout_s: float, is_answer: bool):
    """A server that takes two minutes for a prompt of a word."""
    replies: list = []

    async def long(bench):
        replies.append(await bench.ask("a", Ask(prompt="rain", prompt_tokens=1, max_tokens=1)))
        return CALM

    scenarios = (dataclasses.replace(scenario("one", is_in_quick=True), run=long),)
    target = dataclasses.replace(fake_target("a"), request_timeout_s=request_timeout_s)
    slow = Clock(a_s=100.0)
    try:
        run(check(scenarios=scenarios, target=target, clock=slow, wishes=SLOW))
    except TargetUnreachable:
        assert not is_answer
    else:
        assert [reply.is_answer for reply in replies] == [is_answer]
