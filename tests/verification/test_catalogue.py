"""The named scopes: well formed, and the share of every test run visits a million states and finds nothing."""

import os

import pytest

from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.errors import OperatorError
from kvfence.verification import SCOPES, Why, scope_named, search
from kvfence.verification.catalogue import FULL, HOMING, LISTS, TEST
from kvfence.verification.scopes import COST, NAMES, TIMER_COST, Weather

STATES_OF_A_TEST_RUN = 1_000_000


def test_names_are_taken_once_and_lists_name_scopes():
    assert set(TEST) <= set(FULL) <= set(SCOPES)
    assert set(HOMING) <= set(TEST)
    assert not set(LISTS) & set(SCOPES), "a list and a scope would have one name"
    assert all(name == scope.name and scope.what for name, scope in SCOPES.items())


def test_requests_of_a_kind_differ_in_nothing_but_names():
    for scope in SCOPES.values():
        for kind in scope.kinds:
            shapes = set()
            for request in kind:
                ask = scope.by_number[request]
                shapes.add((len(ask.prompt), ask.max_tokens, ask.stop_after))
                others = [one for one in scope.asks if one.request != request]
                assert not any(ask.prompt[0] == one.prompt[0] for one in others), "a prefix tells them apart"
                assert not any(ask.tenant == one.tenant for one in others), "a tenant tells them apart"
            assert len(shapes) == 1


def test_every_budget_has_its_place_and_every_timer_its_budget():
    assert len(Weather().counts()) == len(NAMES) == len(COST)
    assert len(set(TIMER_COST.values())) == len(TIMER_COST)
    assert Weather(leave=3).counts()[COST["leave"]] == 3


def test_a_name_that_is_none_is_refused_with_a_suggestion():
    with pytest.raises(OperatorError, match="did you mean smoke"):
        scope_named("smok", SCOPES)


@pytest.mark.timeout(1_800)
def test_the_correct_protocol_breaks_nothing_in_a_million_states():
    jobs = max(1, len(os.sched_getaffinity(0)))
    total, rows = 0, set()
    for name in TEST:
        report = search(SCOPES[name], CORRECT, jobs=jobs)
        assert report.counterexample is None, (name, report.counterexample)
        assert report.why is (Why.CLOSED if SCOPES[name].depth is None else Why.DEPTH), name
        total += report.states
        rows |= report.taken
    assert total >= STATES_OF_A_TEST_RUN
    assert len(rows) > 120, "most rows of the three tables were taken on the way"
