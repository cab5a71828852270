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


@pytest.mark.parametrize(("order", "taken"), [("first", [3, 1]), ("last", [2, 1]), ("lowest", [1, 2])])
def test_free_pages_are_taken_in_order(order, taken):
    pool = Pool(4, 4, order=order)
    first = pool.take(3, 1)
    assert first == [0, 1, 2]
    for page in (1, 2):
        pool.give([page])
    assert pool.take(2, 2) == taken


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
