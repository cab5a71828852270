"""Pages of provenance: seals judge as those of the engine do."""

import pytest

from kvfence.protocol.words import IntegrityReason, LeaseId, PageRef
from kvfence.world.memory import Page, Seal, Slot, blank_pool, digest_of, put, seal_fault, slot_at

MINE, OTHER = LeaseId(1, 1), LeaseId(1, 2)
SLOTS = (Slot(1, 0, MINE), Slot(1, 1, MINE))
GOOD = Seal(MINE, 5, 0, 2, digest_of(SLOTS))


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        (Page(GOOD, SLOTS), None),
        (Page(None, SLOTS), IntegrityReason.SEAL_FOREIGN),
        (Page(GOOD._replace(lease=OTHER), SLOTS), IntegrityReason.SEAL_FOREIGN),
        (Page(GOOD._replace(epoch=4), SLOTS), IntegrityReason.SEAL_FOREIGN),
        (Page(GOOD._replace(ordinal=1), SLOTS), IntegrityReason.SEAL_FOREIGN),
        (Page(GOOD._replace(digest=None), SLOTS), IntegrityReason.SEAL_UNWRITTEN),
        (Page(GOOD, (SLOTS[0], None)), IntegrityReason.SEAL_TORN),
        (Page(GOOD._replace(valid=1), SLOTS), IntegrityReason.SEAL_TORN),
    ],
)
def test_each_fault_of_a_page_has_its_reason(page, fault):
    assert seal_fault(page, GOOD._replace(digest=None)) is fault


def test_unused_slots_are_zero_or_the_page_is_torn():
    partial = GOOD._replace(valid=1)
    clean = (SLOTS[0], None)
    assert seal_fault(Page(partial._replace(digest=digest_of(clean)), clean), partial) is None
    assert seal_fault(Page(partial, SLOTS), partial) is IntegrityReason.SEAL_TORN


def test_a_digest_sees_content_and_not_the_lease_under_which_it_came():
    moved = tuple(slot._replace(lease=OTHER) for slot in SLOTS)
    assert digest_of(moved) == digest_of(SLOTS)
    assert digest_of((SLOTS[1], SLOTS[0])) != digest_of(SLOTS)
    assert digest_of((SLOTS[0], None)) == ((1, 0), None)


def test_a_row_finds_its_slot_by_its_block_table():
    pool = blank_pool(3, 2)
    pool[2] = Page(None, put(pool[2].slots, 1, SLOTS[1]))
    table = (PageRef(0, 1), PageRef(2, 1))
    assert slot_at(pool, table, 3, 2) == SLOTS[1] and slot_at(pool, table, 2, 2) is None
