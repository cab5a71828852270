"""Decode's order: seats, waiting, pausing, fairness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvfence.engine.decode_schedule import TURN_STEPS, DecodeSchedule
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import LeaseId


def lease(sequence: int) -> LeaseId:
    return LeaseId(1, sequence)


def schedule_of(rows: int, max_batch: int) -> DecodeSchedule:
    schedule = DecodeSchedule(max_batch)
    for sequence in range(1, rows + 1):
        schedule.add(lease(sequence))
    return schedule


def step(schedule: DecodeSchedule) -> list[int]:
    return [row.sequence for row in schedule.rows_for_step()]


def test_rows_keep_their_seats_while_nobody_comes_or_goes():
    schedule = schedule_of(3, 4)
    assert {tuple(step(schedule)) for _ in range(3 * TURN_STEPS)} == {(1, 2, 3)}
    assert len(schedule) == 3


def test_an_empty_schedule_gives_an_empty_step():
    assert schedule_of(0, 4).rows_for_step() == ()


def test_the_first_that_waits_takes_a_free_seat():
    schedule = schedule_of(4, 2)
    assert step(schedule) == [1, 2]
    assert schedule.waiting_rows == 2
    schedule.remove(lease(1))
    assert step(schedule) == [2, 3]
    assert schedule.waiting_rows == 1


def test_after_its_turn_a_row_yields_one_seat_a_step():
    schedule = schedule_of(4, 2)
    for _ in range(TURN_STEPS):
        assert step(schedule) == [1, 2]
    assert step(schedule) == [2, 3]
    assert step(schedule) == [3, 4]
    for _ in range(TURN_STEPS - 2):
        assert step(schedule) == [3, 4]


def test_a_paused_row_gives_its_seat_away_and_comes_back_first():
    schedule = schedule_of(4, 2)
    step(schedule)
    schedule.pause(lease(1))
    schedule.pause(lease(1))
    assert step(schedule) == [2, 3]
    assert schedule.paused_rows == 1
    schedule.resume(lease(1))
    schedule.resume(lease(1))
    schedule.remove(lease(2))
    assert step(schedule) == [3, 1], "before 4, which waited too"


def test_removed_and_unknown_rows_are_no_fault():
    schedule = schedule_of(3, 2)
    step(schedule)
    for sequence in (1, 1, 3, 99):
        schedule.remove(lease(sequence))
    schedule.pause(lease(2))
    schedule.remove(lease(2))
    schedule.pause(lease(99))
    schedule.resume(lease(99))
    assert len(schedule) == 0
    assert lease(2) not in schedule


def test_a_row_is_added_once_and_a_batch_has_room():
    schedule = schedule_of(3, 2)
    step(schedule)
    schedule.pause(lease(2))
    for sequence in (1, 2, 3):
        with pytest.raises(InvariantError, match="once"):
            schedule.add(lease(sequence))
    with pytest.raises(InvariantError, match="room"):
        DecodeSchedule(0)


@given(rows=st.integers(1, 40), max_batch=st.integers(1, 16))
def test_every_row_gets_its_share(rows, max_batch):
    schedule = schedule_of(rows, max_batch)
    steps = 40 * TURN_STEPS
    served = dict.fromkeys(range(1, rows + 1), 0)
    first_seen = {}
    for number in range(steps):
        batch = step(schedule)
        assert len(batch) == len(set(batch)) == min(rows, max_batch)
        for row in batch:
            served[row] += 1
            first_seen.setdefault(row, number)
    waiting = max(0, rows - max_batch)
    assert max(first_seen.values()) <= (TURN_STEPS + waiting if waiting <= max_batch else steps)
    fair = steps * min(rows, max_batch) / rows
    assert min(served.values()) >= 0.5 * fair
