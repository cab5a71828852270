"""Prefill's order: packing, chunking, fairness, and that every token is planned exactly once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.engine.prefill_schedule import (
    CHUNK_TOKENS_MIN,
    PROMPTS_PER_STEP_MAX,
    ChunkPlan,
    PrefillSchedule,
)
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import LeaseId


def lease(sequence: int) -> LeaseId:
    return LeaseId(1, sequence)


def schedule_of(*prompts: tuple[int, int]) -> PrefillSchedule:
    schedule = PrefillSchedule()
    for sequence, (total, cached) in enumerate(prompts, start=1):
        schedule.add(lease(sequence), total, cached)
    return schedule


def spans(plans: list[ChunkPlan]) -> list[tuple[int, int, int]]:
    return [(plan.lease.sequence, plan.start, plan.end) for plan in plans]


def test_short_prompts_share_a_step():
    schedule = schedule_of((10, 0), (20, 4), (30, 0))
    plans = schedule.next_step(1024)
    assert spans(plans) == [(1, 0, 10), (2, 4, 20), (3, 0, 30)]
    assert all(plan.last for plan in plans)
    assert len(schedule) == 0
    assert schedule.next_step(1024) == []


def test_a_long_prompt_goes_in_chunks_and_only_the_last_is_last():
    schedule = schedule_of((250, 0))
    steps = [schedule.next_step(100) for _ in range(3)]
    assert [spans(s) for s in steps] == [[(1, 0, 100)], [(1, 100, 200)], [(1, 200, 250)]]
    assert [s[0].last for s in steps] == [False, False, True]


def test_short_ones_behind_a_long_one_are_served_in_the_next_step():
    schedule = schedule_of((10_000, 0), (10, 0), (10, 0))
    assert spans(schedule.next_step(1024)) == [(1, 0, 1024)]
    assert spans(schedule.next_step(1024)) == [(2, 0, 10), (3, 0, 10), (1, 1024, 2028)]


def test_a_long_one_is_not_starved_by_a_stream_of_short_ones():
    schedule = schedule_of((1000, 0))
    for sequence in range(2, 60):
        schedule.add(lease(sequence), 50, 0)
        schedule.next_step(100)
        if lease(1) not in schedule:
            break
    assert lease(1) not in schedule, "half of the work goes to it"
    assert sequence <= 25


def test_a_cut_filler_keeps_its_place():
    schedule = schedule_of((40, 0), (500, 0), (500, 0))
    assert spans(schedule.next_step(140)) == [(1, 0, 40), (2, 0, 100)]
    assert spans(schedule.next_step(140)) == [(2, 100, 240)]
    assert spans(schedule.next_step(140)) == [(3, 0, 140)]


def test_a_sliver_is_left_to_prompts_that_fit_whole():
    schedule = schedule_of((100, 0), (500, 0), (CHUNK_TOKENS_MIN - 1, 0))
    assert spans(schedule.next_step(100 + CHUNK_TOKENS_MIN - 1)) == [
        (1, 0, 100),
        (3, 0, CHUNK_TOKENS_MIN - 1),
    ]


def test_a_budget_below_the_smallest_chunk_still_makes_progress():
    schedule = schedule_of((500, 0))
    assert spans(schedule.next_step(3)) == [(1, 0, 3)]


def test_a_removed_prompt_is_not_planned_and_removing_twice_is_no_fault():
    schedule = schedule_of((500, 0), (500, 0))
    schedule.next_step(100)
    schedule.remove(lease(1))
    schedule.remove(lease(1))
    assert spans(schedule.next_step(100)) == [(2, 0, 100)]
    assert lease(1) not in schedule


def test_a_step_has_a_bounded_number_of_prompts():
    schedule = schedule_of(*[(1, 0)] * (PROMPTS_PER_STEP_MAX + 5))
    assert len(schedule.next_step(10_000)) == PROMPTS_PER_STEP_MAX
    assert len(schedule.next_step(10_000)) == 5


@pytest.mark.parametrize(("total", "cached"), [(0, 0), (5, 5), (5, 6), (5, -1)])
def test_nothing_to_compute_is_refused(total, cached):
    with pytest.raises(InvariantError, match="at least one token"):
        PrefillSchedule().add(lease(1), total, cached)


def test_a_lease_is_added_once_and_a_step_has_a_budget():
    schedule = schedule_of((5, 0))
    with pytest.raises(InvariantError, match="once"):
        schedule.add(lease(1), 5, 0)
    with pytest.raises(InvariantError, match="budget"):
        schedule.next_step(0)


prompts = st.lists(
    st.integers(1, 3000).flatmap(lambda t: st.tuples(st.just(t), st.integers(0, t - 1))), max_size=12
)


@given(prompts=prompts, budget=st.integers(1, 1500))
def test_every_token_is_planned_once_in_order_and_nobody_waits_longer_than_a_round(prompts, budget):
    schedule = schedule_of(*prompts)
    done = {sequence: cached for sequence, (_, cached) in enumerate(prompts, start=1)}
    waited = dict.fromkeys(done, 0)
    while len(schedule):
        plans = schedule.next_step(budget)
        assert 0 < sum(plan.end - plan.start for plan in plans) <= budget
        served = {plan.lease.sequence for plan in plans}
        for plan in plans:
            sequence = plan.lease.sequence
            assert plan.start == done[sequence] < plan.end
            assert plan.last == (plan.end == prompts[sequence - 1][0])
            done[sequence] = plan.end
        for sequence in waited:
            waited[sequence] = 0 if sequence in served else waited[sequence] + 1
            assert lease(sequence) not in schedule or waited[sequence] < len(prompts)
    assert done == {sequence: total for sequence, (total, _) in enumerate(prompts, start=1)}
