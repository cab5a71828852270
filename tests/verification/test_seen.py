"""The set of keys holds what a set of numbers holds, in less memory."""

from array import array
from hashlib import blake2b

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.verification.seen import FIRST, FULL_PERCENT, KeyIndex, KeySet


def keys(n):
    return [int.from_bytes(blake2b(str(i).encode(), digest_size=8).digest(), "little") for i in range(n)]


def test_it_says_of_each_key_once_that_it_is_new():
    seen, model = KeySet(), set()
    for key in keys(FIRST * 2) + keys(FIRST * 3):
        assert seen.add(key) == (key not in model)
        model.add(key)
        assert key in seen
    assert not any(key + 1 in seen for key in model if key + 1 not in model)
    assert len(seen) == len(model) == FIRST * 3


def test_keys_in_one_place_do_not_hide_one_another():
    seen = KeySet()
    crowd = [FIRST * step + 5 for step in range(1, 40)]
    assert all(seen.add(key) for key in crowd)
    assert not any(seen.add(key) for key in crowd)


def test_nothing_is_a_key_like_any_other():
    seen = KeySet()
    assert seen.add(0)
    assert not seen.add(0)


def test_it_takes_no_more_than_it_says():
    seen = KeySet()
    for key in keys(FIRST * 3):
        seen.add(key)
    assert seen.bytes <= 8 * len(seen) * 2 * 100 / FULL_PERCENT


def test_an_index_knows_where_every_key_stands():
    known = array("Q", [*keys(FIRST * 2), 0])
    index = KeyIndex(known)
    assert [index.number(key) for key in known] == list(range(len(known)))


def test_a_key_that_is_not_there_is_a_mistake_of_who_asks():
    with pytest.raises(InvariantError, match="is there"):
        KeyIndex(array("Q", [5])).number(5 + FIRST)
