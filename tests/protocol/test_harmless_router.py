"""What the router hears and need not act on: it says what it must, nobody moves, and the answer becomes whole."""

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import prefilling, queued, router_closing, streaming
from tests.protocol.test_router import ALIVE, newest, said_by_decode
from tests.protocol.unmoved import goes_on, unmoved

from kvfence.protocol import commands, events
from kvfence.protocol.words import AttemptId, End, EndReason, LeaseId, Refusal, RefusalCode, Timer, TimerKind

ATTEMPT_ALIVE = tuple(stage for stage, _ in ALIVE)
OPEN = (queued, *ATTEMPT_ALIVE)
OTHER = 7  # the number of an attempt that is not the current one


def about(rig, kind, *args, number=None):
    """What decode would say of the newest request's attempt, or of another one of it."""
    attempt = newest(rig).attempt
    other = AttemptId(attempt.incarnation, attempt.request, number or attempt.number)
    return kind(rig.peer("d0"), other, *args)


def queue_deadline(rig):
    record = newest(rig)
    return events.Expired(Timer(TimerKind.QUEUE, record.request), record.timers[TimerKind.QUEUE])


@pytest.mark.parametrize("stage", OPEN)
def test_the_end_of_another_attempt_is_counted_and_ends_nothing(stage):
    rig = stage()
    unmoved(rig, "r", about(rig, events.AttemptEnded, End(EndReason.STOP), number=OTHER))
    assert rig.router.counts["ignored"] == 1
    goes_on(rig)


@pytest.mark.parametrize("stage", OPEN)
def test_work_of_another_attempt_is_aborted_and_ends_nothing(stage):
    rig = stage()
    (abort,) = unmoved(rig, "r", about(rig, events.TokenMade, 10, number=OTHER), commands.SendAbort)
    assert (abort.peer, abort.attempt.number) == (rig.peer("d0"), OTHER)
    assert rig.router.counts["stray_work"] == 1
    goes_on(rig)


@pytest.mark.parametrize("stage", [prefilling, streaming])
def test_a_repeated_reservation_is_not_handed_over_twice(stage):
    rig = stage()
    unmoved(rig, "r", about(rig, events.Reserved, LeaseId(3, 1), ()))
    assert rig.router.counts["ignored"] == 1
    goes_on(rig)


@pytest.mark.parametrize("stage", ATTEMPT_ALIVE)
def test_the_queue_deadline_does_not_end_what_has_left_the_queue(stage):
    rig = stage()
    unmoved(rig, "r", queue_deadline(rig))
    goes_on(rig)


@pytest.mark.parametrize("stage", [prefilling, streaming])
def test_a_refusal_after_the_queue_deadline_is_that_deadline(stage):
    rig = stage()
    rig.feed("r", queue_deadline(rig))
    busy = End(EndReason.REFUSED, refusal=Refusal(RefusalCode.BUSY))
    said_by_decode(rig, events.AttemptEnded, busy)
    assert rig.finished[1].refusal == Refusal(RefusalCode.DEADLINE)


@pytest.mark.parametrize("stage", [prefilling, streaming])
def test_a_token_that_was_delivered_before_is_dropped(stage):
    rig = stage()
    unmoved(rig, "r", about(rig, events.TokenMade, 9))
    assert rig.router.counts["tokens_dropped"] == 1
    goes_on(rig)


def test_tokens_follow_one_another():
    rig = streaming()
    (token,) = unmoved(rig, "r", about(rig, events.TokenMade, 11), commands.DeliverToken)
    assert token.position == 11
    rig.seats["d0"].rows[rig.lease().lease].position = 11
    goes_on(rig)


# ---------------------------------------------------------------- nobody knows the request
def test_each_word_about_an_unknown_request_is_counted():
    rig = Joined()
    attempt = AttemptId(rig.peer("r").incarnation, 77, 1)
    unmoved(rig, "r", events.ClientGone(77))
    assert rig.router.counts["stray"] == 1
    unmoved(rig, "r", events.AttemptEnded(rig.peer("d0"), attempt, End(EndReason.STOP)))
    assert rig.router.counts["stray"] == 2
    unmoved(rig, "r", events.TokenMade(rig.peer("d0"), attempt, 3), commands.SendAbort)
    assert rig.router.counts["stray_work"] == 1


# ---------------------------------------------------------------- CLOSING
def test_what_was_on_its_way_to_a_request_that_is_over_is_not_strange():
    rig = router_closing()
    unmoved(rig, "r", about(rig, events.Reserved, LeaseId(3, 1), ()))
    unmoved(rig, "r", events.ClientGone(1))
    unmoved(rig, "r", queue_deadline(rig))
    unmoved(rig, "r", about(rig, events.AttemptEnded, End(EndReason.STOP), number=OTHER))
    assert "ignored" not in rig.router.counts
    unmoved(rig, "r", about(rig, events.TokenMade, 10))
    assert rig.router.counts["tokens_dropped"] == 1
    (abort,) = unmoved(rig, "r", about(rig, events.TokenMade, 10, number=OTHER), commands.SendAbort)
    assert abort.attempt.number == OTHER
    assert rig.answers[1] == []
    rig.held.clear()
    rig.run().assert_home()
