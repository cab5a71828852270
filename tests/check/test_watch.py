"""The watch, in virtual time: a month of looks takes seconds."""

import asyncio

import pytest
from tests.check.fake.faults import setup_for
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.transport import FakeTransport
from tests.check.virtual import run

from kvfence.check.credentials import Redactor
from kvfence.check.scenario import Hazard
from kvfence.check.scenarios import SCENARIOS
from kvfence.check.target import simple_target
from kvfence.check.watch import Watch, ordinary
from kvfence.check.watch_state import WatchState
from kvfence.report import FindingMade, Noted, ScenarioEnded

NAMES = ("one-word", "first-token")


def watch_of(setup: Setup, *, names=NAMES, transport=None) -> tuple[Watch, list, list]:
    events: list = []
    seen: list = []
    redactor = Redactor()
    watch = Watch(
        target=simple_target("http://fake", key_names=(), environ={}, redactor=redactor),
        scenarios=tuple(SCENARIOS[name] for name in names),
        state=WatchState(target="http://fake"),
        period_s=3_600.0,
        emit=events.append,
        redactor=redactor,
        changed=lambda state: seen.append((dict(state.scenarios), state.is_up, state.stopped)),
        transport=transport or FakeTransport(FakeServer(setup).app),
        wall_clock=lambda: 1_000.0,
    )
    return watch, events, seen


async def timed(watch: Watch, looks: int) -> float:
    began = asyncio.get_running_loop().time()
    await watch.go(looks_max=looks)
    return asyncio.get_running_loop().time() - began


def test_scenarios_take_turns_spread_over_the_period():
    watch, events, seen = watch_of(Setup())
    assert run(timed(watch, 4)) == pytest.approx(2 * 3_600.0)
    ended = [event.scenario for event in events if isinstance(event, ScenarioEnded)]
    assert ended == ["one-word", "first-token", "one-word", "first-token"]
    assert len(seen) == 5  # at the start, and after each look
    assert watch.state.requests > 0


def test_a_healthy_server_is_never_stopped():
    watch, events, _ = watch_of(Setup())
    run(watch.go(looks_max=6))
    assert watch.state.stopped is None
    assert not [event for event in events if isinstance(event, FindingMade)]


def test_a_server_that_is_down_is_shown_and_tried_again():
    watch, events, seen = watch_of(Setup(), transport=FakeTransport({}))
    run(watch.go(looks_max=2))
    assert [is_up for _, is_up, _ in seen] == [True, False, False]
    assert len([event for event in events if isinstance(event, Noted) and event.is_warning]) >= 2


def test_only_what_is_ordinary_may_run():
    chosen = ordinary(tuple(SCENARIOS.values()))
    assert chosen
    assert all(scenario.hazard is Hazard.ORDINARY for scenario in chosen)


def test_a_foreign_marker_ends_the_asking():
    watch, events, _ = watch_of(setup_for("response-misroute/kept-rest"), names=("marker-sweep",))
    run(watch.go(looks_max=20))
    assert watch.state.stopped == "a leak was seen by marker-sweep"
    assert [event.finding.code for event in events if isinstance(event, FindingMade)] == ["KVF201"]
