"""The plan: what runs, what does not, and why."""

import dataclasses

import pytest

from kvfence.check.known import Known, Need, TokenCounter
from kvfence.check.plan import make_plan
from kvfence.check.profiles import QUICK, STANDARD
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario
from kvfence.protocol.errors import OperatorError
from kvfence.report import Cost, Verdict

KNOWN = Known(model="m", has=frozenset({Need.USAGE}), counter=TokenCounter(count=len, how="bytes", error=0.2))


async def nothing(_bench: Bench) -> Outcome:
    return Outcome(verdict=Verdict.INCONCLUSIVE, why="it does nothing")


def scenario(name: str, **changes: object) -> Scenario:
    plain = Scenario(
        name=name,
        what="",
        hazard=Hazard.ORDINARY,
        classes=(),
        oracle="",
        control="",
        codes=(),
        cost=lambda _known, size: Cost(requests=size.rounds),
        run=nothing,
    )
    return dataclasses.replace(plain, **changes)


SAFE = scenario("safe", is_in_quick=True)
LONG = scenario("long")
HEAVY = scenario("heavy", hazard=Hazard.HEAVY, is_in_quick=True)
PAIR = scenario("pair", needs=frozenset({Need.TWO_TENANTS, Need.USAGE}), is_in_quick=True)
ALL = (SAFE, LONG, HEAVY, PAIR)


def names(chosen: tuple) -> list[str]:
    return [one.scenario.name for one in chosen]


def test_quick_takes_what_is_cheap():
    assert names(make_plan(ALL, KNOWN, QUICK).chosen) == ["safe"]


def test_what_a_profile_wants_first_comes_first():
    profile = dataclasses.replace(STANDARD, first=("pair", "long"))
    known = dataclasses.replace(KNOWN, has=frozenset(Need), is_loopback=True)
    assert names(make_plan(ALL, known, profile).chosen) == ["pair", "long", "safe", "heavy"]


def test_a_hazard_that_is_not_allowed_is_left_with_the_way_to_allow_it():
    left = {one.scenario.name: one.why for one in make_plan(ALL, KNOWN, QUICK).left}
    assert "--allow heavy" in left["heavy"]


def test_a_hazard_that_is_allowed_runs():
    plan = make_plan(ALL, KNOWN, QUICK, allowed=frozenset({Hazard.HEAVY}))
    assert names(plan.chosen) == ["safe", "heavy"]


def test_everything_is_allowed_on_loopback():
    plan = make_plan(ALL, dataclasses.replace(KNOWN, is_loopback=True), QUICK)
    assert names(plan.chosen) == ["safe", "heavy"]


def test_a_need_that_is_not_met_is_named_and_one_that_is_met_is_not():
    left = {one.scenario.name: one.why for one in make_plan(ALL, KNOWN, QUICK).left}
    assert left["pair"] == "it needs two credentials that are two tenants"


def test_a_need_that_is_met_lets_it_run():
    known = dataclasses.replace(KNOWN, has=frozenset({Need.TWO_TENANTS, Need.USAGE}))
    assert "pair" in names(make_plan(ALL, known, QUICK).chosen)


def test_where_nothing_can_be_tested_nothing_runs():
    known = dataclasses.replace(KNOWN, untestable="another model answers")
    plan = make_plan(ALL, known, QUICK)
    assert plan.chosen == ()
    assert {one.why for one in plan.left} == {"another model answers"}


def test_costs_are_those_of_the_profiles_size():
    assert make_plan(ALL, KNOWN, STANDARD, only=("safe", "long")).cost == Cost(requests=4)


def test_a_scenario_that_is_named_runs_whatever_the_profile_takes():
    assert names(make_plan(ALL, KNOWN, QUICK, only=("long",)).chosen) == ["long"]


def test_a_name_that_is_not_there_has_a_suggestion():
    with pytest.raises(OperatorError, match="did you mean heavy"):
        make_plan(ALL, KNOWN, QUICK, only=("heavi",))
