import pytest
from tests.kv.pools import INCARNATION, key_of, lease_of, make_pool, write_sealed

from kvfence.kv.guard import GROWTH_PAGES, ROTATION, TRAILERS_PER_CHECK, StepGuard
from kvfence.kv.own_pages import open_page, seal_own_page
from kvfence.kv.seal import stamp_unwritten
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.words import IntegrityReason, LeaseId, PageRef


class Node:
    """A decode node's pages: rows of SEALED pages with an OPEN one at the end."""

    def __init__(self, pages: int = 64) -> None:
        self.pool = make_pool(pages)
        self.ledger = PageLedger(pages)
        self.guard = StepGuard(self.pool, self.ledger, INCARNATION)
        self.rows: dict[LeaseId, list[PageRef]] = {}

    def start(self, sequence: int, pages: int) -> LeaseId:
        lease = lease_of(sequence)
        refs = self.ledger.lease(pages, sequence)
        assert refs is not None
        for ordinal, ref in enumerate(refs[:-1]):
            write_sealed(self.pool, lease, ref, ordinal)
        open_page(self.pool, lease, refs[-1], pages - 1)
        self.guard.add_row(lease, refs)
        self.rows[lease] = list(refs)
        return lease

    def grow(self, lease: LeaseId) -> None:
        (ref,) = self.ledger.lease(1, lease.sequence) or ()
        open_page(self.pool, lease, ref, len(self.rows[lease]))
        self.guard.grow_row(lease, ref)
        self.rows[lease].append(ref)

    def steps(self, leases, count):
        return [self.guard.check_before(leases) + self.guard.check_after(leases) for _ in range(count)]

    def take_over(self, page: int, sequence: int) -> None:
        """The page goes to another lease while the row still has it: a broken release."""
        self.ledger.close(self.ledger.refs([page]))
        self.ledger.free(self.ledger.refs([page]))
        assert self.ledger.lease(1, sequence) == self.ledger.refs([page])


def test_a_healthy_batch_passes_while_it_grows_and_changes():
    node = Node(256)
    leases = [node.start(sequence, pages=sequence) for sequence in (1, 2, 5, 40)]
    for step in range(3 * ROTATION):
        assert not node.steps(leases, 1)[0]
        if step % 3 == 0:
            node.grow(leases[step % len(leases)])
        if step == ROTATION:
            node.guard.remove_row(leases.pop(1))
        if step == 2 * ROTATION:
            leases.append(node.start(6, pages=3))


def test_no_rows_no_findings():
    assert Node().guard.check_before([]) == []


def test_a_page_that_the_ledger_gave_away_is_found_before_the_step_and_is_not_poisoned():
    node = Node()
    victim, other = node.start(1, 4), node.start(2, 4)
    assert not node.steps([victim, other], 3)[-1]
    page = node.rows[victim][2].page
    node.take_over(page, sequence=3)
    (finding,) = node.guard.check_before([victim, other])
    assert (finding.lease, finding.reason) == (victim, IntegrityReason.GUARD_OWNER)
    assert finding.pages == (page,)
    assert finding.poisoned == ()


def test_a_page_leased_again_to_the_same_row_has_another_epoch():
    node = Node()
    row = node.start(1, 3)
    node.take_over(node.rows[row][1].page, sequence=1)
    (finding,) = node.guard.check_before([row])
    assert finding.reason is IntegrityReason.GUARD_OWNER


def test_a_page_freed_under_a_row_is_found():
    node = Node()
    row = node.start(1, 3)
    refs = node.rows[row][:1]
    node.ledger.close(refs)
    node.ledger.free(refs)
    (finding,) = node.guard.check_before([row])
    assert finding.pages == (refs[0].page,)


def test_a_page_that_nobody_wrote_fails_its_row_and_is_not_poisoned():
    node = Node()
    victim, other = node.start(1, 4), node.start(2, 4)
    refs = node.rows[victim]
    stamp_unwritten(node.pool, victim, refs[1:3], first_ordinal=1)
    (finding,) = node.guard.check_before([victim, other])
    assert (finding.lease, finding.reason) == (victim, IntegrityReason.GUARD_SEAL)
    assert finding.pages == (refs[1].page, refs[2].page)
    assert finding.poisoned == ()


@pytest.mark.parametrize("when", ["check_before", "check_after"])
@pytest.mark.parametrize("index", [0, 1, 3])
def test_a_foreign_trailer_in_a_small_batch_is_found_at_once_and_poisons(when, index):
    node = Node()
    victim, other = node.start(1, 4), node.start(2, 4)
    assert not node.steps([victim, other], 2)[-1]
    ref = node.rows[victim][index]
    write_sealed(node.pool, lease_of(9), ref, index)
    (finding,) = getattr(node.guard, when)([victim, other])
    assert (finding.lease, finding.reason) == (victim, IntegrityReason.GUARD_SEAL)
    assert finding.pages == finding.poisoned == (ref.page,)


@pytest.mark.parametrize(
    ("lease", "epoch_step", "ordinal"),
    [
        (lease_of(2), 0, 1),
        (LeaseId(8, 1), 0, 1),
        (lease_of(1), 1, 1),
        (lease_of(1), -1, 1),
        (lease_of(1), 0, 2),
    ],
)
def test_each_word_of_the_header_is_compared(lease, epoch_step, ordinal):
    node = Node()
    row = node.start(1, 3)
    ref = node.rows[row][1]
    write_sealed(node.pool, lease, PageRef(ref.page, ref.epoch + epoch_step), ordinal)
    assert [finding.reason for finding in node.guard.check_before([row])] == [IntegrityReason.GUARD_SEAL]


def test_an_own_page_may_be_sealed_in_place():
    node = Node()
    row = node.start(1, 2)
    ref = node.rows[row][1]
    seal_own_page(node.pool, row, key_of(row), ref, 1)
    assert not node.steps([row], 2)[-1]


def test_every_bad_row_is_named_and_only_those():
    node = Node()
    leases = [node.start(sequence, 3) for sequence in (1, 2, 3, 4)]
    node.take_over(node.rows[leases[1]][0].page, sequence=5)
    bad = node.rows[leases[3]][1]
    write_sealed(node.pool, lease_of(9), bad, 1)
    findings = node.guard.check_before(leases)
    assert [(finding.lease, finding.reason) for finding in findings] == [
        (leases[1], IntegrityReason.GUARD_OWNER),
        (leases[3], IntegrityReason.GUARD_SEAL),
    ]


def test_only_rows_of_the_step_are_judged():
    node = Node()
    victim, other = node.start(1, 3), node.start(2, 3)
    node.take_over(node.rows[victim][0].page, sequence=5)
    assert node.guard.check_before([other]) == []
    assert [finding.lease for finding in node.guard.check_before([other, victim])] == [victim]
    node.guard.remove_row(victim)
    node.guard.remove_row(victim)
    assert node.guard.check_before([other]) == []


def test_a_page_given_away_after_growth_is_found():
    node = Node(256)
    first, second = node.start(1, 3), node.start(2, 3)
    assert not node.steps([first, second], 1)[0]
    for _ in range(ROTATION + GROWTH_PAGES):
        node.grow(first)
        assert not node.steps([first, second], 1)[0]
    page = node.rows[first][-1].page
    node.take_over(page, sequence=9)
    (finding,) = node.guard.check_before([first, second])
    assert (finding.lease, finding.pages) == (first, (page,))


LARGE_PAGES = 64 * TRAILERS_PER_CHECK


@pytest.fixture(scope="module")
def large():
    """One row so long that a step reads 1/64 of its trailers."""
    node = Node(LARGE_PAGES + 300)
    return node, node.start(1, LARGE_PAGES), node.start(2, 100)


def test_all_trailers_of_a_fresh_row_are_read_in_a_large_batch(large):
    node, row, _ = large
    node.steps([row], 2)
    for index in (0, 7, 98):
        fresh = node.start(3, 100)
        ref = node.rows[fresh][index]
        write_sealed(node.pool, lease_of(9), ref, index)
        for check in (node.guard.check_before, node.guard.check_after):
            assert [finding.lease for finding in check([row, fresh])] == [fresh]
        node.guard.remove_row(fresh)
        node.ledger.close(node.rows[fresh])
        node.ledger.free(node.rows[fresh])


@pytest.mark.parametrize("every", [1, 2, 3, 4])
@pytest.mark.parametrize("index", [0, 1, 777, LARGE_PAGES - 2])
def test_a_foreign_trailer_in_a_large_batch_is_found_within_64_of_the_row_s_steps(large, every, index):
    node, row, other = large
    node.steps([row, other], 2)  # neither is fresh any more
    ref = node.rows[row][index]
    saved = node.pool.page(ref.page).copy()
    write_sealed(node.pool, lease_of(9), ref, index)
    try:
        found = []
        for _ in range(ROTATION):
            for _ in range(every - 1):
                assert not node.guard.check_before([other])
            found += node.guard.check_before([row, other])
        assert {finding.lease for finding in found} == {row}
    finally:
        node.pool.page(ref.page)[:] = saved


def test_a_row_is_of_this_incarnation_guarded_once_and_has_pages():
    node = Node()
    row = node.start(1, 2)
    with pytest.raises(InvariantError, match="incarnation"):
        node.guard.add_row(LeaseId(INCARNATION + 1, 1), node.rows[row])
    with pytest.raises(InvariantError, match="once"):
        node.guard.add_row(row, node.rows[row])
    with pytest.raises(InvariantError, match="at least one"):
        node.guard.add_row(lease_of(2), [])
