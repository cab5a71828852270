"""The named scopes: well formed, and the share of every test run visits a million states and finds nothing."""

import os
from dataclasses import replace

import pytest

from kvfence.protocol import DecodeCore, DecodeFact
from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.errors import OperatorError
from kvfence.verification import SCOPES, Why, scope_named, search
from kvfence.verification.catalogue import FULL, LISTS, TEST
from kvfence.verification.scopes import COST, NAMES, TIMER_COST, Weather
from kvfence.world import Kind

STATES_OF_A_TEST_RUN = 1_000_000


def test_names_are_taken_once_and_lists_name_scopes():
    assert set(TEST) <= set(FULL) <= set(SCOPES)
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


def test_a_decode_node_that_leases_twice_for_one_attempt_is_found_where_there_is_room(monkeypatch):
    def lease_twice(core, event):
        core._fire_absent(event.attempt, DecodeFact.RESERVE_FITS, event)

    assert search(SCOPES["repeat-room"], CORRECT).counterexample is None
    monkeypatch.setattr(DecodeCore, "_on_reserve", lease_twice)
    found = search(SCOPES["repeat-room"], CORRECT).counterexample
    assert Kind.TWO_LEASES in {finding.kind for finding in found.findings}


def test_a_core_that_heeds_an_old_timer_is_found(monkeypatch):
    heed = DecodeCore._on_expired

    def heed_any(core, event):
        record = core.leases.get(event.timer.key)
        present = event.generation if record is None else record.timers.get(event.timer.kind)
        heed(core, event if present is None else replace(event, generation=present))

    assert search(SCOPES["stale-timer"], CORRECT).counterexample is None
    monkeypatch.setattr(DecodeCore, "_on_expired", heed_any)
    found = search(SCOPES["stale-timer"], CORRECT).counterexample
    assert [finding.kind for finding in found.findings] == [Kind.STALE_TIMER]


@pytest.mark.timeout(1_800)
def test_the_correct_protocol_breaks_nothing_in_a_million_states():
    jobs = max(1, len(os.sched_getaffinity(0)))
    total, rows = 0, set()
    for name in TEST:
        report = search(SCOPES[name], CORRECT, jobs=jobs, ways_home=True)
        assert report.counterexample is None, (name, report.counterexample)
        assert report.why is (Why.CLOSED if SCOPES[name].depth is None else Why.DEPTH), name
        if report.homing is not None:
            assert report.homing.counterexample is None, (name, report.homing)
        else:
            assert report.walks.lost is None, (name, report.walks)
        total += report.states
        rows |= report.taken
    assert total >= STATES_OF_A_TEST_RUN
    assert len(rows) > 120, "most rows of the three tables were taken on the way"
