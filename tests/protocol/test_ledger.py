"""The page ledger: every move of the table, every move that is not in it, counts, epochs, and size."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvfence.protocol import Move, PageLedger, PageState
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.ledger import MOVES
from kvfence.protocol.words import PageRef

INCIDENT_PAGES = 127_500  # 2,040,000 tokens in pages of 16
INCIDENT_LEASE_PAGES = 65_536  # 1,048,576 tokens


def in_state(state):
    """A ledger whose page 0 is in that state."""
    ledger = PageLedger(2)
    if state is PageState.FREE:
        return ledger
    refs = ledger.lease(1, 7)
    ways = {
        PageState.RESERVED: [],
        PageState.OPEN: [lambda: ledger.open(refs)],
        PageState.SEALED: [lambda: ledger.seal(refs)],
        PageState.CLOSING: [lambda: ledger.close(refs)],
        PageState.POISONED: [lambda: ledger.poison([0])],
        PageState.CACHED: [lambda: ledger.seal(refs), lambda: ledger.disown(refs)],
    }
    for way in ways[state]:
        way()
    assert ledger.state[0] == state
    return ledger


@pytest.mark.parametrize("state", PageState)
@pytest.mark.parametrize("move", Move)
def test_every_move_is_a_row_or_is_refused(state, move):
    ledger = in_state(state)
    before = bytes(ledger.state)
    target = MOVES.get((state, move))
    if target is None:
        with pytest.raises(InvariantError, match=f"in {state.name} cannot take {move.value}"):
            ledger._move(move, [0])
        assert bytes(ledger.state) == before
    else:
        ledger._move(move, [0])
        assert ledger.state[0] == target
        assert ledger.count(target) == list(ledger.state).count(target)


def test_a_lease_is_all_or_nothing():
    ledger = PageLedger(4)
    assert ledger.lease(5, 1) is None
    assert ledger.count(PageState.FREE) == 4
    assert len(ledger.lease(4, 1)) == 4
    assert ledger.lease(1, 2) is None


def test_each_lease_is_a_new_epoch():
    ledger = PageLedger(1)
    first = ledger.lease(1, 1)
    assert first == (PageRef(0, 1),)
    ledger.close(first)
    assert ledger.free(first) == (0,)
    second = ledger.lease(1, 2)
    assert second == (PageRef(0, 2),)
    assert ledger.owns(2, second[0])
    assert not ledger.owns(2, first[0])
    assert not ledger.owns(1, second[0])


def test_owner_is_nobody_or_the_lease():
    ledger = PageLedger(2)
    assert ledger.owner_of(0) is None
    (ref,) = ledger.lease(1, 9)
    assert ledger.owner_of(ref.page) == 9


def test_spare_pages_are_no_capacity_but_can_be_leased():
    ledger = PageLedger(4, spare_pages=1)
    assert (ledger.pages, ledger.total, ledger.free_pages) == (4, 5, 4)
    ledger.lease(5, 1)
    assert ledger.free_pages == 0


def test_a_pinned_page_cannot_become_free():
    ledger = PageLedger(2)
    refs = ledger.lease(1, 1)
    ledger.seal(refs)
    ledger.pin([0])
    ledger.disown(refs)
    assert ledger.state[0] == PageState.SEALED, "in use: not evictable"
    with pytest.raises(InvariantError, match="law 4"):
        ledger._give_back(Move.EVICT, [0])
    ledger.unpin([0])
    assert ledger.state[0] == PageState.CACHED
    assert ledger.evict([0]) == (0,)


def test_pins_are_counted_on_both_sides():
    ledger = PageLedger(2)
    with pytest.raises(InvariantError, match="pinned but not sealed"):
        ledger.pin([0])
    with pytest.raises(InvariantError, match="more often than pinned"):
        ledger.unpin([0])
    refs = ledger.lease(1, 1)
    ledger.seal(refs)
    ledger.disown(refs)
    ledger.pin([0])
    ledger.pin([0])
    ledger.unpin([0])
    assert (ledger.state[0], ledger.pins[0]) == (PageState.SEALED, 1)


def test_only_sealed_pages_are_left_to_the_index():
    ledger = PageLedger(2)
    refs = ledger.lease(1, 1)
    with pytest.raises(InvariantError, match="published but not sealed"):
        ledger.disown(refs)


def test_a_page_named_twice_is_refused():
    ledger = PageLedger(2)
    (ref,) = ledger.lease(1, 1)
    with pytest.raises(InvariantError, match="named twice"):
        ledger.close([ref, ref])


def test_poison_is_cleared_only_from_poison():
    ledger = PageLedger(2)
    ledger.lease(1, 1)
    ledger.poison([0])
    assert ledger.clear([0]) == (0,)
    with pytest.raises(InvariantError):
        ledger.clear([0])


def test_nonsense_is_refused():
    for wrong in (lambda: PageLedger(0), lambda: PageLedger(1, spare_pages=-1)):
        with pytest.raises(InvariantError):
            wrong()
    ledger = PageLedger(1)
    for n, sequence in ((0, 1), (1, 0)):
        with pytest.raises(InvariantError):
            ledger.lease(n, sequence)


def test_views_stay_true():
    """Others read the arrays without a copy."""
    ledger = PageLedger(2)
    state, owner = memoryview(ledger.state), memoryview(ledger.owner)
    ledger.lease(1, 5)
    assert (state[0], owner[0]) == (PageState.RESERVED, 5)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(sizes=st.lists(st.integers(1, 5), max_size=30))
def test_pages_are_neither_lost_nor_doubled(sizes):
    ledger = PageLedger(12, spare_pages=1)
    leases = []
    for sequence, n in enumerate(sizes, 1):
        refs = ledger.lease(n, sequence)
        if refs is None:
            oldest = leases.pop(0)
            ledger.close(oldest)
            ledger.free(oldest)
        else:
            leases.append(refs)
        held = [ref.page for refs in leases for ref in refs]
        assert len(held) == len(set(held)) == 13 - ledger.count(PageState.FREE)
        assert len(ledger._free) == ledger.count(PageState.FREE)


def test_the_incident_size_takes_tens_of_milliseconds():
    """No gate on absolute speed: the bound is twenty times what a slow core takes."""
    ledger = PageLedger(INCIDENT_PAGES, spare_pages=16)
    began = time.process_time()
    refs = ledger.lease(INCIDENT_LEASE_PAGES, 1)
    ledger.close(refs)
    ledger.free(refs)
    assert time.process_time() - began < 2.0
    assert ledger.count(PageState.FREE) == ledger.total
