"""A run: scenarios one after another, and what ends it."""

import asyncio
import dataclasses
from datetime import date
from pathlib import Path

import pyrage
import pytest
from tests.check.lone import FunctionClient, said, session_of
from tests.check.test_plan import scenario
from tests.check.virtual import run

from kvfence.check.asks import Ask
from kvfence.check.budget import Limits
from kvfence.check.evidence import Vault
from kvfence.check.plan import Chosen, Left, Plan
from kvfence.check.reply import Failure, Reply
from kvfence.check.run import Run
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.stops import BudgetSpent, LifelineFailed, Since, When
from kvfence.report import Cost, FindingMade, Noted, ScenarioEnded, ScenarioStarted, Severity, Verdict

CALM = Outcome(verdict=Verdict.NO_EVIDENCE, why="quiet", opportunities=30, sensitivity=1.0, co_residence=0.5)
SIGHTING = Sighting(code="KVF206", severity=Severity.MEDIUM, what="it differs", subject_key="differs")


def doing(name: str, run, **changes) -> Scenario:
    return dataclasses.replace(scenario(name), run=run, **changes)


def ending_with(name: str, outcome: Outcome, **changes) -> Scenario:
    async def end(_bench: Bench) -> Outcome:
        return outcome

    return doing(name, end, **changes)


async def play(
    *scenarios: Scenario, answer=lambda _tenant, _ask: said("x"), limits=None, small=None, left=()
):
    """Run them; returns what they came to by name, the events, and the session."""
    session = session_of(FunctionClient(answer), limits=limits, small=small)
    plan = Plan(tuple(Chosen(one, Size(), Cost()) for one in scenarios), tuple(left))
    this = Run(
        session=session,
        plan=plan,
        about="http://server m",
        seed="7",
        profile="quick",
        run_id="r1",
        hash_key=b"k" * 32,
    )
    ended = await this.go()
    return {one.scenario.name: one.outcome for one in ended}, session.emit.__self__, session


def of(kind: type, events: list) -> list:
    return [event for event in events if isinstance(event, kind)]


def test_each_scenario_starts_and_ends_in_order():
    _, events, _ = run(play(ending_with("one", CALM), ending_with("two", CALM)))
    names = [(type(event).__name__, event.scenario) for event in events]
    assert names == [
        ("ScenarioStarted", "one"),
        ("ScenarioEnded", "one"),
        ("ScenarioStarted", "two"),
        ("ScenarioEnded", "two"),
    ]


def test_no_evidence_comes_with_its_bound():
    _, events, _ = run(play(ending_with("one", CALM)))
    (ended,) = of(ScenarioEnded, events)
    assert ended.bound.upper_95 == pytest.approx(3 / (30 * 0.5 * 1.0))


@pytest.mark.parametrize("lacking", ["opportunities", "sensitivity", "co_residence"])
def test_no_evidence_without_a_number_is_inconclusive(lacking: str):
    outcome = dataclasses.replace(CALM, **{lacking: 0 if lacking == "opportunities" else None})
    outcomes, events, _ = run(play(ending_with("one", outcome)))
    assert outcomes["one"].verdict is Verdict.INCONCLUSIVE
    assert lacking.replace("_", "-") in outcomes["one"].why
    assert of(ScenarioEnded, events)[0].bound is None


def test_a_foreign_marker_ends_the_run_with_what_to_do():
    async def leaks(bench: Bench) -> Outcome:
        markers.append(bench.mint("berta"))
        await bench.ask("anna", Ask(prompt="hi"))
        return CALM

    markers: list = []
    outcomes, events, _ = run(
        play(doing("leaky", leaks), ending_with("after", CALM), answer=lambda _t, _a: said(markers[0].text))
    )
    assert outcomes["leaky"].verdict is Verdict.LEAK
    assert outcomes["after"].verdict is Verdict.NOT_TESTED
    assert "leaky" in outcomes["after"].why
    (made,) = of(FindingMade, events)
    assert (made.finding.code, made.finding.severity) == ("KVF201", Severity.CRITICAL)
    assert made.finding.replay == "kvfence check URL --replay 7.leaky.quick"
    assert markers[0].text not in repr(events)
    advice = " ".join(note.text for note in of(Noted, events))
    assert all(word in advice for word in ("Contain", "Preserve", "Tell"))


@pytest.mark.parametrize(
    ("owner", "words"),
    [("berta", "that only berta was"), ("anna", "that only another of its own requests was")],
)
def test_a_foreign_marker_says_whose_it_was(owner: str, words: str):
    async def leaks(bench: Bench) -> Outcome:
        markers.append(bench.mint(owner))
        await bench.ask("anna", Ask(prompt="hi"))
        return CALM

    markers: list = []
    outcomes, _, _ = run(play(doing("leaky", leaks), answer=lambda _t, _a: said(markers[0].text)))
    assert words in outcomes["leaky"].why


def test_a_foreign_marker_among_requests_at_once_ends_it_too():
    async def leaks(bench: Bench) -> Outcome:
        markers.append(bench.mint("berta"))
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(bench.ask("anna", Ask(prompt="hi")))
        return CALM

    markers: list = []
    outcomes, _, _ = run(play(doing("leaky", leaks), answer=lambda _t, _a: said(markers[0].text)))
    assert outcomes["leaky"].verdict is Verdict.LEAK


def failing(when: When, since: Since, hazard: Hazard = Hazard.MAY_STOP_SERVER) -> Scenario:
    async def long(bench: Bench) -> Outcome:
        raise LifelineFailed("nobody is served", request=9, when=when, since=since)

    return doing("boundary", long, hazard=hazard)


def test_after_a_lifeline_that_failed_only_ordinary_scenarios_run():
    heavy = ending_with("heavy", CALM, hazard=Hazard.HEAVY)
    light = ending_with("light", CALM)
    outcomes, events, _ = run(play(failing(When.LATE, Since.SILENT), heavy, light))
    assert outcomes["boundary"].verdict is Verdict.HANG
    assert of(FindingMade, events)[0].finding.code == "KVF205"
    assert outcomes["heavy"].verdict is Verdict.NOT_TESTED
    assert outcomes["light"].verdict is Verdict.NO_EVIDENCE


@pytest.mark.parametrize(
    ("when", "since"),
    [
        (When.LATE, Since.IN_TIME),
        (When.LATE, Since.UNSEEN),
        (When.EARLY, Since.SILENT),
        (When.AFTERWARDS, Since.SILENT),
    ],
)
def test_held_up_for_longer_than_reading_takes_or_for_good_is_a_hang(when: When, since: Since):
    outcomes, events, _ = run(play(failing(when, since)))
    assert outcomes["boundary"].verdict is Verdict.HANG
    assert since.value in of(FindingMade, events)[0].finding.what


@pytest.mark.parametrize(
    ("when", "since"),
    [
        (When.EARLY, Since.IN_TIME),
        (When.EARLY, Since.SLOW),
        (When.EARLY, Since.UNSEEN),
        (When.AFTERWARDS, Since.SLOW),
        (When.BEFORE, Since.SILENT),
    ],
)
def test_a_server_that_is_only_slow_is_no_hang(when: When, since: Since):
    outcomes, events, _ = run(play(failing(when, since)))
    assert outcomes["boundary"].verdict is Verdict.INCONCLUSIVE
    assert of(FindingMade, events) == []


def test_what_was_cancelled_early_is_not_said_to_have_hung():
    outcomes, _, _ = run(play(failing(When.EARLY, Since.IN_TIME)))
    assert "whether it would have been answered is not known" in outcomes["boundary"].why


def test_a_scenario_that_finds_nothing_to_test_says_so_once():
    none = Outcome(verdict=Verdict.NOT_TESTED, why="one model")
    _, events, _ = run(play(ending_with("swap", none)))
    assert [event.scenario for event in of(ScenarioEnded, events)] == ["swap"]


def test_a_lifeline_that_fails_under_other_load_is_inconclusive():
    outcomes, events, _ = run(play(failing(When.LATE, Since.SILENT, Hazard.HEAVY)))
    assert outcomes["boundary"].verdict is Verdict.INCONCLUSIVE
    assert of(FindingMade, events) == []


def test_a_spent_budget_ends_the_run_and_nothing_passes():
    async def asks(bench: Bench) -> Outcome:
        for _ in range(3):
            await bench.ask("anna", Ask(prompt="hi"))
        return CALM

    outcomes, _, session = run(
        play(doing("greedy", asks), ending_with("after", CALM), limits=Limits(requests=2))
    )
    assert outcomes["greedy"].verdict is Verdict.INCONCLUSIVE
    assert outcomes["after"].verdict is Verdict.NOT_TESTED
    assert session.budget.used.requests == 2


def test_what_a_scenario_had_seen_when_the_budget_was_spent_is_told():
    async def asks(bench: Bench) -> Outcome:
        for _ in range(3):
            try:
                await bench.ask("anna", Ask(prompt="hi"))
            except BudgetSpent as spent:
                spent.so_far = dataclasses.replace(CALM, verdict=Verdict.SUSPECT, sightings=(SIGHTING,))
                raise
        return CALM

    outcomes, events, _ = run(
        play(doing("greedy", asks), ending_with("after", CALM), limits=Limits(requests=2))
    )
    assert outcomes["greedy"].verdict is Verdict.SUSPECT
    assert len(of(FindingMade, events)) == 1
    assert outcomes["after"].verdict is Verdict.NOT_TESTED


def test_what_was_not_chosen_is_told_with_its_reason():
    left = Left(scenario("never"), "it needs wings")
    _, events, _ = run(play(left=(left,)))
    (ended,) = of(ScenarioEnded, events)
    assert (ended.verdict, ended.why) == (Verdict.NOT_TESTED, "it needs wings")
    assert of(ScenarioStarted, events) == []


def suspect(name: str, p_value: float) -> Scenario:
    outcome = dataclasses.replace(CALM, verdict=Verdict.SUSPECT, p_value=p_value, sightings=(SIGHTING,))
    return ending_with(name, outcome)


def test_a_suspect_holds_when_its_corrected_p_value_does():
    outcomes, events, _ = run(play(suspect("one", 0.0001), suspect("two", 0.4)))
    assert outcomes["one"].verdict is Verdict.SUSPECT
    assert outcomes["two"].verdict is Verdict.NO_EVIDENCE
    assert [made.scenario for made in of(FindingMade, events)] == ["one"]


def test_a_p_value_that_would_hold_alone_does_not_hold_among_many():
    alone, _, _ = run(play(suspect("one", 0.008)))
    among, _, _ = run(play(suspect("one", 0.008), *(suspect(f"n{index}", 0.9) for index in range(9))))
    assert alone["one"].verdict is Verdict.SUSPECT
    assert among["one"].verdict is Verdict.NO_EVIDENCE


def test_a_defect_of_a_scenario_is_told_whole():
    async def wrong(bench: Bench) -> Outcome:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(play(doing("wrong", wrong)))


def test_a_server_that_is_down_from_the_start_has_no_lifeline():
    async def heavy(bench: Bench) -> Outcome:
        await bench.ask("anna", Ask(prompt="long", is_heavy=True))
        return CALM

    outcomes, _, _ = run(
        play(
            doing("heavy", heavy, hazard=Hazard.HEAVY),
            small=lambda _t, _a: Reply(status=None, failure=Failure.CONNECT),
        )
    )
    assert outcomes["heavy"].verdict is Verdict.INCONCLUSIVE


def test_full_evidence_is_kept_encrypted(tmp_path: Path):
    async def leaks(bench: Bench) -> Outcome:
        markers.append(bench.mint("berta"))
        await bench.ask("anna", Ask(prompt="hi"))
        return CALM

    async def go():
        session = session_of(FunctionClient(lambda _t, _a: said(markers[0].text)))
        vault = Vault(
            folder=tmp_path,
            recipient=str(pyrage.x25519.Identity.generate().to_public()),
            keep_until=date(2027, 1, 1),
        )
        plan = Plan((Chosen(doing("leaky", leaks), Size(), Cost()),), ())
        this = Run(
            session=session,
            plan=plan,
            about="a",
            seed="7",
            profile="quick",
            run_id="r1",
            hash_key=b"k" * 32,
            vault=vault,
        )
        await this.go()

    markers: list = []
    run(go())
    assert [path.name for path in tmp_path.iterdir()] == ["r1-1.age"]
