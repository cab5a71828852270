"""A ring is seen once, and not at all after the end."""

import os
import select

from kvfence.serving.bell import Bell


def is_ringing(bell):
    return bool(select.select([bell], [], [], 0)[0])


def test_rings_are_heard_as_one_and_then_it_is_silent():
    bell = Bell()
    assert not is_ringing(bell)
    bell.ring()
    bell.ring()
    assert is_ringing(bell)
    bell.hush()
    assert not is_ringing(bell)
    bell.hush()
    bell.close()


def test_a_ring_after_the_end_reaches_no_other_file():
    bell = Bell()
    number = bell.fileno()
    bell.close()
    heir = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        assert heir == number, "the lowest free number is given out again"
        bell.ring()
        assert not select.select([heir], [], [], 0)[0]
    finally:
        os.close(heir)
