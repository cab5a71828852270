"""From what a scenario saw to what the report says; how a run uses it is in test_run.py."""

import dataclasses

import pytest
from tests.check.test_plan import scenario

from kvfence.check.scenario import Outcome, Sighting
from kvfence.check.verdicts import Ended, bound_of, corrected, finding_of, replay_id, without_false_calm
from kvfence.report import Severity, Verdict

CALM = Outcome(verdict=Verdict.NO_EVIDENCE, why="quiet", opportunities=30, sensitivity=1.0, co_residence=0.5)


def test_the_bound_is_three_over_n_c_d():
    bound = bound_of(CALM)
    assert (bound.opportunities, bound.co_residence, bound.sensitivity) == (30, 0.5, 1.0)
    assert bound.upper_95 == pytest.approx(0.2)


def test_a_bound_is_never_above_one():
    assert bound_of(dataclasses.replace(CALM, opportunities=1)).upper_95 == 1.0


def test_no_evidence_with_a_bound_stays_as_it_is():
    assert without_false_calm(CALM) is CALM


def test_other_verdicts_need_no_bound():
    outcome = Outcome(verdict=Verdict.TRUNCATED, why="cut")
    assert without_false_calm(outcome) is outcome


def test_a_suspect_that_does_not_hold_and_has_no_bound_is_inconclusive():
    outcome = Outcome(verdict=Verdict.SUSPECT, why="differs", p_value=0.5)
    (one,) = corrected([Ended(scenario=scenario("one"), outcome=outcome)])
    assert one.outcome.verdict is Verdict.INCONCLUSIVE


def test_correction_leaves_other_verdicts_alone():
    ended = Ended(scenario=scenario("one"), outcome=dataclasses.replace(CALM, p_value=0.9))
    assert corrected([ended]) == (ended,)


def test_a_finding_says_how_it_is_seen_again():
    sighting = Sighting(code="KVF204", severity=Severity.HIGH, what="half is gone", subject_key="head")
    replay = replay_id(seed="7", scenario="boundary", profile="quick")
    finding = finding_of(sighting, scenario("boundary"), about="http://server m", replay=replay)
    assert finding.replay == "kvfence check URL --replay 7.boundary.quick"
    assert (finding.code, finding.about, finding.subject_key) == (
        "KVF204",
        "http://server m",
        "boundary/head",
    )
