"""The pool never zeroes, says whose a slot is, and hands pages out in the order it was told."""

import pytest
from tests.check.fake.memory import NOBODY, Pool


def test_a_page_that_was_given_back_keeps_what_stood_in_it():
    pool = Pool(2, 4)
    (page, _) = pool.take(2, 1)
    pool.write(page, 0, ["a", "b"], 1)
    pool.give([page])
    assert pool.take(1, 2) == [page]
    assert pool.read([page], 3) == (["a", "b", None], [1, 1, NOBODY])


@pytest.mark.parametrize(("is_lifo", "taken"), [(False, [3]), (True, [0])])
def test_free_pages_are_taken_in_order(is_lifo, taken):
    pool = Pool(4, 4, is_lifo=is_lifo)
    first = pool.take(3, 1)
    pool.give(first[2:] if not is_lifo else first)
    assert pool.take(1, 2) == (taken if not is_lifo else first[:1])


def test_too_many_pages_are_none():
    pool = Pool(2, 4)
    assert pool.take(3, 1) is None
    assert pool.free == 2


def test_a_write_into_somebody_elses_page_lands_and_is_counted():
    pool = Pool(1, 4)
    (page,) = pool.take(1, 1)
    pool.write(page, 0, ["mine"], 1)
    assert pool.foreign_writes == 0
    pool.write(page, 0, ["late"], 2)
    assert pool.foreign_writes == 1
    assert pool.read([page], 1) == (["late"], [2])
