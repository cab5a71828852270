"""What decode hears and need not act on: it says what it must, nobody moves, and the answer becomes whole.

Messages are repeated, a writer that has closed may die, steps come and go: none of it is the end of a row.
"""

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import decode_closing, reserved, running, uncopied, verifying, waiting
from tests.protocol.test_decode import UNKNOWN, only
from tests.protocol.unmoved import goes_on, strange, unmoved

from kvfence.protocol import PageState, commands, events
from kvfence.protocol.words import (
    End,
    EndReason,
    Failed,
    Failure,
    IntegrityReason,
    LeaseId,
    PageRef,
    RefusalCode,
    Timer,
    TimerKind,
)

# The record that a test looks at is the oldest: in `waiting` the younger one was preempted for it.
LIVE = (reserved, verifying, running, waiting)
WRITER_CLOSED = (verifying, running, waiting)
ROWS = (running, waiting)


def oldest(rig):
    return rig.lease(index=0)


def reserve_again(record):
    return events.Reserve(record.router, record.attempt, record.writer, record.tokens, 9, record.token_hash)


def closed_again(record):
    return events.Closed(record.writer, record.lease, Failed(Failure.ABORTED))


@pytest.mark.parametrize("stage", LIVE)
def test_a_repeated_reserve_is_answered_with_the_same_pages(stage):
    rig = stage()
    record = oldest(rig)
    (answer,) = unmoved(rig, "d0", reserve_again(record), commands.SendReserved)
    assert (answer.attempt, answer.lease, answer.pages) == (record.attempt, record.lease, record.pages)
    goes_on(rig)


@pytest.mark.parametrize("stage", WRITER_CLOSED)
def test_a_writer_that_has_closed_may_be_lost_and_cut(stage):
    rig = stage()
    unmoved(rig, "d0", events.PeerLost(rig.peer("p0")), commands.AskCut)
    unmoved(rig, "d0", events.Cut(rig.peer("p0")))
    goes_on(rig)


@pytest.mark.parametrize("stage", WRITER_CLOSED)
def test_closed_said_again_is_no_news(stage):
    rig = stage()
    unmoved(rig, "d0", closed_again(oldest(rig)))
    goes_on(rig)


@pytest.mark.parametrize("stage", ROWS)
def test_steps_come_and_go(stage):
    rig = stage()
    lease = oldest(rig).lease
    unmoved(rig, "d0", events.StepLaunched(80, (lease,)))
    unmoved(rig, "d0", events.StepRetired(80))
    goes_on(rig)


@pytest.mark.parametrize("stage", ROWS)
def test_a_full_page_is_sealed_under_a_row_that_goes_on(stage):
    rig = stage()
    record = oldest(rig)
    unmoved(rig, "d0", events.PageSealed(record.lease, record.tail))
    assert rig.decode.ledger.state[record.tail.page] == PageState.SEALED
    goes_on(rig)


def test_a_tail_is_copied_under_a_row_that_goes_on():
    rig = uncopied()
    lease = rig.lease().lease
    unmoved(rig, "d0", events.TailCopied(lease), commands.PagesFreed)
    rig.links["d0", "d0"].clear()  # the executor's own word, which the stage holds back
    goes_on(rig)


def test_a_row_that_gets_a_page_goes_on():
    rig = running()
    lease = rig.lease().lease
    rig.seats["d0"].rows[lease].wants_page = True
    unmoved(rig, "d0", events.PageWanted(lease), commands.StampPages, commands.GrantPage)
    goes_on(rig)


def test_a_row_that_has_waited_runs_again_and_may_wait_again():
    rig = waiting()
    older = oldest(rig).lease
    unmoved(rig, "d0", events.PageWanted(older))
    out = rig.feed("d0", events.StepRetired(70))
    assert only(out, commands.GrantPage).lease == older
    assert rig.decode.lease_counts["running"] == 1
    assert rig.decode.lease_counts["waiting"] == 0
    goes_on(rig)


# ---------------------------------------------------------------- nobody knows the lease
def test_each_word_about_an_unknown_lease_is_counted_and_takes_nothing():
    """The executor may have spoken of a row before it heard that the row was stopped."""
    said = (
        events.Closed(Joined().peer("p0"), UNKNOWN, Failed(Failure.ABORTED)),
        events.PageWanted(UNKNOWN),
        events.PageSealed(UNKNOWN, PageRef(0, 1)),
        events.TailCopied(UNKNOWN),
        events.RowFinished(UNKNOWN, End(EndReason.STOP)),
        events.GuardRejected(UNKNOWN, IntegrityReason.GUARD_OWNER, (0,)),
    )
    for stage in (Joined, waiting):  # with pages left, and with none
        for event in said:
            rig = stage()
            unmoved(rig, "d0", event)
            assert rig.decode.counts["stray"] == 1
            goes_on(rig)


# ---------------------------------------------------------------- CLOSING
def closing_row():
    """A row that was aborted under a launched step; its writer has closed long ago."""
    rig = running()
    record = rig.lease()
    rig.feed("d0", events.StepLaunched(70, (record.lease,)))
    rig.feed("d0", events.Abort(record.router, record.attempt))
    return rig


def test_what_was_on_its_way_to_a_closing_lease_is_not_strange():
    rig = decode_closing()
    record = rig.lease()
    unmoved(rig, "d0", events.Abort(record.router, record.attempt))
    (answer,) = unmoved(rig, "d0", reserve_again(record), commands.SendReserveRefused)
    assert answer.refusal.code is RefusalCode.STALE
    unmoved(rig, "d0", events.PeerLost(rig.peer("r")))
    unmoved(rig, "d0", events.PeerLost(rig.peer("p0")), commands.AskCut)
    rig.run()
    assert rig.is_home("d0"), "the cut was proven"


def test_closed_said_again_after_the_end_of_a_row_is_not_strange():
    rig = closing_row()
    unmoved(rig, "d0", closed_again(rig.lease()))
    rig.feed("d0", events.StepRetired(70))
    assert rig.is_home("d0")


def test_steps_of_a_closing_lease_are_waited_for_and_not_strange():
    rig = closing_row()
    lease = rig.lease().lease
    unmoved(rig, "d0", events.StepLaunched(71, (lease,)))
    unmoved(rig, "d0", events.StepRetired(70))
    out = rig.feed("d0", events.StepRetired(71))
    assert only(out, commands.PagesFreed)
    assert strange(rig, "d0") == {}
    assert rig.is_home("d0")


def test_a_verification_that_ends_after_its_lease_is_not_strange():
    rig = verifying()
    record = rig.lease()
    rig.feed("d0", events.StepLaunched(70, (record.lease,)))  # so that the lease stays to be seen
    rig.feed("d0", events.Abort(record.router, record.attempt))
    odd = strange(rig, "d0")
    unmoved(rig, "d0", events.SealsVerified(record.lease))
    assert strange(rig, "d0") == odd
    rig.feed("d0", events.StepRetired(70))
    assert rig.is_home("d0")


def test_no_word_of_our_own_speaks_for_a_writer_that_may_still_write():
    """Steps and verifications of a lease that was never handed over: illegal or stray, and no proof of quiet."""
    rig = reserved()
    lease = rig.lease().lease
    rig.feed("d0", events.StepLaunched(70, (lease,)))
    assert rig.decode.counts["illegal"] == 1
    unmoved(rig, "d0", events.StepLaunched(71, (lease,)))
    unmoved(rig, "d0", events.StepRetired(71))
    unmoved(rig, "d0", events.SealsVerified(lease))
    unmoved(rig, "d0", events.StepRetired(70))
    assert rig.decode.ledger.count(PageState.CLOSING) == 4, "the writer has neither closed nor been cut"
    rig.release(("d0", "p0"))
    rig.run()
    assert rig.is_home("d0")


def test_a_close_is_asked_again_by_the_timer_alone():
    rig = decode_closing()
    lease = rig.lease().lease
    timer = Timer(TimerKind.CLOSE_RETRY, lease)
    generation = rig.lease().timers[TimerKind.CLOSE_RETRY]
    unmoved(rig, "d0", events.Expired(timer, generation), commands.SendClose, commands.SetTimer)
    assert rig.feed("d0", events.Expired(timer, generation)) == [], "an older timer asks nothing"
    assert rig.decode.leases.keys() == {LeaseId(rig.peer("d0").incarnation, 1)}
