"""The oracle sees a foreign read, and stays silent on what a row may read."""

import pytest
from tests.world.play import ask

from kvfence.protocol.words import LeaseId, PageRef
from kvfence.world.memory import Page, Slot
from kvfence.world.oracle import Kind, judge_reads, judge_unused, read_fault, same_prefix

MINE, OTHER = LeaseId(1, 1), LeaseId(1, 2)
ASKS = {
    1: ask(1, 4, tenant="a"),
    2: ask(2, 4, tenant="a", start=1),
    3: ask(3, 4, tenant="b", start=1),
    4: ask(4, 4, tenant="a"),
}


@pytest.mark.parametrize(("other", "same"), [(1, True), (2, True), (3, False), (4, False), (9, False)])
def test_content_is_shared_by_equal_prefixes_of_one_tenant_alone(other, same):
    assert same_prefix(ASKS, 1, other, 2) is same


def test_answers_differ_where_prompts_are_equal():
    assert not same_prefix(ASKS, 1, 2, 4)


@pytest.mark.parametrize(
    ("slot", "lease", "kind"),
    [
        (Slot(1, 2, MINE), MINE, None),
        (None, MINE, Kind.UNWRITTEN_READ),
        (Slot(1, 2, OTHER), MINE, Kind.FOREIGN_READ),
        (Slot(4, 2, MINE), MINE, Kind.FOREIGN_READ),
        (Slot(1, 1, MINE), MINE, Kind.FOREIGN_READ),
        (Slot(2, 2, OTHER), None, None),
        (Slot(3, 2, OTHER), None, Kind.FOREIGN_READ),
    ],
)
def test_each_slot_is_judged(slot, lease, kind):
    assert read_fault(slot, ASKS, 1, 2, lease) is kind


def test_a_whole_row_is_judged_up_to_its_position():
    pool = [
        Page(None, (Slot(1, 0, MINE), Slot(1, 1, MINE))),
        Page(None, (Slot(1, 2, MINE), Slot(4, 3, OTHER))),
    ]
    table = (PageRef(0, 1), PageRef(1, 1))
    assert judge_reads(pool, table, ASKS, 1, 3, MINE) is None
    kind, what = judge_reads(pool, table, ASKS, 1, 4, MINE)
    assert kind is Kind.FOREIGN_READ and "position 3" in what


def test_unused_slots_are_zero_or_the_row_s_own():
    pool = [Page(None, (Slot(1, 0, MINE), Slot(4, 3, OTHER)))]
    assert judge_unused(pool, (PageRef(0, 1),), 2, MINE) is None
    assert "unused slot" in judge_unused(pool, (PageRef(0, 1),), 1, MINE)
    assert judge_unused(pool, (PageRef(0, 1),), 1, OTHER) is None
