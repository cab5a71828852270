"""What a happening looked at is the path to what it did."""

import pytest

from kvfence.protocol.errors import InvariantError
from kvfence.verification.memo import Effect, Root
from kvfence.verification.parts import Names, Parts, Sink

PARTS = Parts(Names(symmetric=True, numbered=False, kinds={}))


def part(value):
    sink = Sink(PARTS.names)
    sink.put(value)
    return PARTS.intern(value, sink)


A, B, C, D = (part(name) for name in "ABCD")


def effect():
    return Effect((), (), ())


def test_it_is_recalled_where_all_that_was_looked_at_is_the_same():
    root, first = Root("something", None), effect()
    assert root.recall((A, B, C)) is None
    root.learn([(2, C), (0, A)], first)
    assert root.recall((A, B, C)) is first
    assert root.recall((A, D, C)) is first, "nobody looked at the second part"
    assert root.recall((B, B, C)) is None
    assert root.recall((A, B, D)) is None


def test_it_may_look_further_where_it_saw_something_else():
    root, short, long = Root("something", None), effect(), effect()
    root.learn([(0, A)], short)
    root.learn([(0, B), (1, C)], long)
    assert root.recall((A, D)) is short
    assert root.recall((B, C)) is long


def test_what_looks_at_nothing_always_does_the_same():
    root, only = Root("something", None), effect()
    root.learn([], only)
    assert root.recall((A,)) is root.recall((B,)) is only


def test_the_same_happening_cannot_stop_looking_where_it_looked_further():
    root = Root("something", None)
    root.learn([(0, A)], effect())
    with pytest.raises(InvariantError):
        root.learn([(0, A), (1, B), (2, C)], effect())
