"""Each way in which a request, a lease or a hand-over ends, in each state: who hears which reason, what stays.

A wrong row could end a lease all the same, by failing closed; so every test says the exact reason.
"""

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import (
    computing,
    prefilling,
    queued,
    reserved,
    reserving,
    router_closing,
    running,
    sending,
    streaming,
    verifying,
    waiting,
)
from tests.protocol.test_decode import only
from tests.protocol.test_prefill import outcome_of
from tests.protocol.test_router import ended, newest, said_by_decode

from kvfence.protocol import PageState, commands, events
from kvfence.protocol.words import (
    End,
    EndReason,
    Failed,
    Failure,
    IntegrityReason,
    Refusal,
    RefusalCode,
    Timer,
    TimerKind,
)

LIVE_ON_DECODE = (reserved, verifying, running, waiting)
LIVE_ON_PREFILL = (computing, sending)
ROWS = (running, waiting)
CLIENT_GONE = End(EndReason.CLIENT_GONE)
ROUTER_LOST = End(EndReason.PEER_LOST, detail="the router was lost")


def oldest(rig, name="d0"):
    return rig.lease(name, 0)


def ends(rig, event, end, *, name="d0"):
    """Decode says this end of its oldest lease, stops the row if there is one, and quarantines its pages."""
    record = oldest(rig)
    is_row = record.lease in rig.seats["d0"].rows
    out = rig.feed(name, event)
    said = [c.end for c in out if isinstance(c, commands.SendEnded) and c.attempt == record.attempt]
    assert said == [end]
    stopped = [c for c in out if isinstance(c, commands.StopRow) and c.lease == record.lease]
    assert bool(stopped) is is_row
    assert record.lease not in rig.decode.waiting
    assert "illegal" not in rig.decode.counts
    return out


# ---------------------------------------------------------------- decode
@pytest.mark.parametrize("stage", LIVE_ON_DECODE)
def test_an_abort_ends_a_lease_as_the_client_left_it(stage):
    rig = stage()
    ends(rig, events.Abort(oldest(rig).router, oldest(rig).attempt), CLIENT_GONE)


@pytest.mark.parametrize("stage", LIVE_ON_DECODE)
def test_a_lost_router_ends_its_leases_for_that_reason(stage):
    rig = stage()
    ends(rig, events.PeerLost(rig.peer("r")), ROUTER_LOST)


def test_a_lost_writer_ends_what_it_had_open_for_that_reason():
    rig = reserved()
    lost = End(EndReason.PEER_LOST, detail="the prefill node was lost")
    ends(rig, events.PeerLost(rig.peer("p0")), lost)


def test_a_young_row_that_waits_makes_way_as_preempted_whatever_is_quarantined():
    """The page that is missing will come from it: that is no refusal, and not for want of quarantined pages."""
    rig = Joined(decode_pages=12, spare=1)
    rig.hold("step")
    rig.submit(8, 8)
    rig.submit(4, 4)
    rig.run()
    rig.hold(("d0", "p0"), ("r", "p0"))
    rig.submit(16, 4)
    rig.run()
    rig.leave(3)
    rig.run()
    assert rig.decode.quarantined_pages > 0
    _, younger, _ = rig.decode.leases
    while rig.decode.ledger.count(PageState.FREE):
        rig.feed("d0", events.PageWanted(younger))
    out = rig.feed("d0", events.PageWanted(younger))
    assert only(out, commands.SendEnded).end == End(EndReason.PREEMPTED)
    assert rig.decode.counts["preempted"] == 1


@pytest.mark.parametrize("stage", ROWS)
def test_what_the_guard_found_ends_a_row_and_keeps_its_page(stage):
    rig = stage()
    record = oldest(rig)
    event = events.GuardRejected(record.lease, IntegrityReason.GUARD_SEAL, (record.pages[0].page,))
    ends(rig, event, End(EndReason.INTEGRITY, integrity=IntegrityReason.GUARD_SEAL))
    assert rig.decode.ledger.count(PageState.POISONED) == 1


@pytest.mark.parametrize("stage", ROWS)
def test_a_finished_row_ends_as_its_executor_says(stage):
    rig = stage()
    ends(rig, events.RowFinished(oldest(rig).lease, End(EndReason.STOP)), End(EndReason.STOP))


@pytest.mark.parametrize("hold", [("r", "p0"), "VerifySeals"])
def test_a_younger_lease_makes_way_as_preempted(hold):
    rig = Joined(decode_pages=4, spare=1)
    rig.hold("step")
    rig.submit(8, 8)
    rig.run()
    rig.hold(hold)
    rig.submit(4, 4)
    rig.run()
    older, younger = rig.decode.leases.values()
    out = rig.feed("d0", events.PageWanted(older.lease))
    assert only(out, commands.SendEnded).attempt == younger.attempt
    assert only(out, commands.SendEnded).end == End(EndReason.PREEMPTED)
    assert rig.decode.counts == {"preempted": 1}


# ---------------------------------------------------------------- prefill
def outcome_at_last(rig, event):
    """What prefill says of its oldest lease, once its writes have completed; its pages are home then."""
    rig.feed("p0", event)
    while rig.writes:
        rig.do(("write", 0))
    (closed,) = [c for _, _, c in rig.log if isinstance(c, commands.SendClosed)]
    assert rig.is_home("p0")
    return closed.outcome


@pytest.mark.parametrize("stage", LIVE_ON_PREFILL)
def test_a_lost_router_ends_the_hand_over_for_that_reason(stage):
    rig = stage()
    assert outcome_at_last(rig, events.PeerLost(rig.peer("r"))) == Failed(Failure.PEER_LOST)


@pytest.mark.parametrize("stage", LIVE_ON_PREFILL)
def test_a_lease_below_the_lowest_live_one_is_given_up_as_aborted(stage):
    rig = stage()
    record = oldest(rig, "p0")
    event = events.LowestLive(record.decode, record.lease.sequence + 1)
    assert outcome_at_last(rig, event) == Failed(Failure.ABORTED)


def test_a_connection_that_is_lost_before_anything_was_posted_is_a_failed_transfer():
    rig = Joined()
    rig.hold("StartPrefill", ("p0", "d0"))
    rig.submit(14, 9)
    rig.run()
    out = rig.feed("p0", events.ConnectionDestroyed(rig.peer("d0")))
    assert outcome_of(out) == Failed(Failure.TRANSFER), "nothing can land: it may be said"
    assert only(out, commands.StopPrefill)
    assert rig.is_home("p0")


def test_the_end_of_another_leases_connection_is_a_failed_transfer():
    """Its own write completed before the connection was destroyed: nothing of it is in doubt."""
    rig = Joined()
    rig.hold("write", ("p0", "d0"), ("d0", "p0"))
    rig.submit(8, 2)
    rig.submit(8, 2)
    rig.run()
    first, second = rig.prefill.leases.values()
    rig.feed("p0", events.WriteFailed(first.lease, min(first.in_flight)))
    out = rig.feed("p0", events.WriteCompleted(second.lease, min(second.in_flight)))
    assert only(out, commands.SendClosed).lease == second.lease
    assert outcome_of(out) == Failed(Failure.TRANSFER)


# ---------------------------------------------------------------- router
def finishes(rig, event, end, *, request=1):
    """The client hears this end, once, and no other."""
    out = rig.feed("r", event)
    assert only(out, commands.FinishRequest) == commands.FinishRequest(request, end)
    assert "illegal" not in rig.router.counts
    return out


def deadline(rig, kind):
    record = newest(rig)
    return events.Expired(Timer(kind, record.request), record.timers[kind])


def test_deadlines_in_the_queue_end_the_request_at_once():
    no_room = End(EndReason.REFUSED, refusal=Refusal(RefusalCode.DEADLINE), detail="no room in time")
    for kind, end in ((TimerKind.REQUEST, End(EndReason.DEADLINE)), (TimerKind.QUEUE, no_room)):
        rig = queued()
        finishes(rig, deadline(rig, kind), end, request=2)
        assert list(rig.router.requests) == [1]
        assert rig.router.queue == []


@pytest.mark.parametrize("stage", [reserving, prefilling, streaming])
def test_a_client_that_left_is_told_nothing_else(stage):
    rig = stage()
    finishes(rig, events.ClientGone(1), CLIENT_GONE)
    assert rig.router.request_counts["closing"] == 1, "decode has yet to say that its lease ended"


@pytest.mark.parametrize("stage", [reserving, prefilling, streaming])
def test_what_decode_ends_is_over_at_once(stage):
    rig = stage()
    event = events.AttemptEnded(rig.peer("d0"), newest(rig).attempt, End(EndReason.EXECUTOR))
    finishes(rig, event, End(EndReason.EXECUTOR))
    assert not rig.router.requests
    assert {node.pages for node in rig.router.nodes.values()} == {0}


@pytest.mark.parametrize("stage", [reserving, prefilling, streaming])
def test_a_lost_decode_node_after_its_retry_is_the_end(stage):
    rig = stage()
    newest(rig).retries = rig.router.config.retries_max
    finishes(rig, events.PeerLost(rig.peer("d0")), End(EndReason.PEER_LOST))
    assert not rig.router.requests, "who is dead has nothing more to say"


def test_a_lost_prefill_node_after_its_retry_is_the_end_and_decode_is_told():
    rig = prefilling()
    newest(rig).retries = rig.router.config.retries_max
    out = finishes(rig, events.PeerLost(rig.peer("p0")), End(EndReason.PEER_LOST))
    assert rig.peer("d0") in {c.peer for c in out if isinstance(c, commands.SendAbort)}
    assert rig.router.request_counts["closing"] == 1


@pytest.mark.parametrize("stage", [reserving, prefilling])
def test_a_writer_that_decode_lost_before_the_first_token_is_tried_again(stage):
    rig = stage()
    out = ended(rig, EndReason.PEER_LOST)
    asked = only(out, commands.SendReserve)
    assert asked.attempt.number == 2
    aborted = [c.peer.node for c in out if isinstance(c, commands.SendAbort)]
    assert aborted == ["d0", "p0"]
    assert rig.router.counts["retried"] == 1
    assert rig.router.request_counts["reserving"] == 1


@pytest.mark.parametrize("stage", [reserving, prefilling, streaming])
def test_a_preemption_is_no_retry(stage):
    rig = stage()
    ended(rig, EndReason.PREEMPTED)
    assert (newest(rig).retries, rig.router.counts["preempted"]) == (0, 1)
    assert "retried" not in rig.router.counts


def test_an_attempt_that_prefill_had_no_room_for_is_no_retry_and_keeps_its_queue_deadline():
    rig = prefilling()
    before = newest(rig).timers[TimerKind.QUEUE]
    out = ended(rig, EndReason.REFUSED, refusal=Refusal(RefusalCode.BUSY))
    assert not [c for c in out if isinstance(c, commands.SetTimer)]
    assert (newest(rig).retries, newest(rig).timers[TimerKind.QUEUE]) == (0, before)
    assert not {"retried", "preempted"} & rig.router.counts.keys()


def test_the_last_word_of_decode_lets_a_closing_request_go():
    words = (
        lambda rig: said_by_decode(rig, events.AttemptEnded, CLIENT_GONE),
        lambda rig: said_by_decode(rig, events.ReserveRefused, Refusal(RefusalCode.BUSY)),
        lambda rig: rig.feed("r", events.PeerLost(rig.peer("d0"))),
        lambda rig: rig.feed("r", deadline(rig, TimerKind.REQUEST)),
    )
    for word in words:
        rig = router_closing()
        assert word(rig) == []
        assert not rig.router.requests
        assert {node.pages for node in rig.router.nodes.values()} == {0}
        assert rig.finished == {1: CLIENT_GONE}
