"""Walks home from the last layer of a scope that does not close."""

from dataclasses import replace

import pytest

from kvfence.faults import faulty_decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.verification import SCOPES, Limits, Why, search
from kvfence.verification.scopes import Weather
from kvfence.world import Kind

CUT_SHORT = replace(SCOPES["smoke"], depth=16)


def test_from_every_state_of_the_last_layer_a_walk_comes_home():
    widths = []
    report = search(CUT_SHORT, CORRECT, ways_home=True, progress=lambda level: widths.append(level.frontier))
    assert report.why is Why.DEPTH
    assert report.homing is None
    assert report.walks.lost is None
    assert report.walks.walked == report.walks.states == widths[-1]
    assert report.walks.longest > 10


@pytest.mark.parametrize("jobs", [1, 2])
def test_at_most_as_many_as_were_asked_for_spread_over_the_layer(jobs):
    limits = Limits(walks_max=50, wide=10)
    walks = search(CUT_SHORT, CORRECT, ways_home=True, jobs=jobs, limits=limits).walks
    assert 25 < walks.walked <= 50 < walks.states


def test_a_deadline_that_is_due_is_no_early_one():
    """A lease that waits for its second Close, in a scope that may ring that timer early once, too."""
    weather = Weather(leave=1, drop=1, close_retry_timer=1)
    scope = replace(CUT_SHORT, weather=weather, depth=9)
    walks = search(scope, CORRECT, ways_home=True, limits=Limits(walks_max=400)).walks
    assert walks.lost is None


def test_a_walk_that_does_not_come_home_is_a_finding_with_the_way_there():
    decisions = faulty_decisions(("transfer-outlives-pages/close-asked-once",))()
    ignored = frozenset(Kind)
    walks = search(replace(CUT_SHORT, depth=20), decisions, ways_home=True, ignored=ignored).walks
    assert walks.lost is not None
    assert len(walks.lost.happenings) == 20
    assert walks.lost.findings[0].kind is Kind.NOT_HOME
