"""The router core, row by row: each test is a short sequence over the joined rig."""

from dataclasses import replace

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import (
    prefilling,
    queued,
    reserving,
    router_closing,
    running,
    streaming,
    waiting,
)
from tests.protocol.test_decode import only

from kvfence.protocol import Decisions, RouterFact, RouterState, commands, events
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import (
    AttemptId,
    End,
    EndReason,
    LeaseId,
    Refusal,
    RefusalCode,
    Role,
    Timer,
    TimerKind,
)

BUSY = Refusal(RefusalCode.BUSY)
ALIVE = (
    (reserving, RouterState.RESERVING),
    (prefilling, RouterState.PREFILLING),
    (streaming, RouterState.STREAMING),
)


def took(rig, state, fact):
    """The last event took this row on the router."""
    rows = [(t.state, t.fact) for t in rig.router.trail]
    assert (state, fact) in rows, rows


def newest(rig):
    return list(rig.router.requests.values())[-1]


def refusal_of(out):
    return only(out, commands.FinishRequest).end.refusal


def said_by_decode(rig, kind, *args, record=None, number=None):
    """A message of decode about the newest request's attempt."""
    record = record or newest(rig)
    attempt = record.attempt if number is None else replace(record.attempt, number=number)
    return rig.feed("r", kind(rig.peer("d0"), attempt, *args))


def ended(rig, reason, **kwargs):
    return said_by_decode(rig, events.AttemptEnded, End(reason, **kwargs))


# ---------------------------------------------------------------- admission (law 6)
def test_the_limit_is_the_smallest_pool_or_the_context():
    assert Joined(prefill_pages=8, decode_pages=16).router.limit_tokens == 32
    assert Joined(prefill_pages=16, decode_pages=8).router.limit_tokens == 32
    assert Joined(context=30).router.limit_tokens == 30
    assert Joined(hello=False).router.limit_tokens is None


@pytest.mark.parametrize("around", [-1, 0, 1])
def test_prompt_and_max_tokens_around_the_limit(around):
    rig = Joined(prefill_pages=8, decode_pages=8)
    request = rig.submit(20, 12 + around)
    rig.run().assert_home()
    fits = around <= 0
    assert (rig.finished[request].reason is EndReason.LENGTH) is fits
    if not fits:
        assert rig.finished[request].refusal == Refusal(RefusalCode.CONTEXT_LENGTH, 33, 32)


@pytest.mark.parametrize("around", [-1, 0, 1])
def test_prompt_without_max_tokens_around_the_limit(around):
    rig = Joined(prefill_pages=8, decode_pages=8)
    request = rig.submit(32 + around, None)
    rig.run().assert_home()
    fits = around < 0
    assert (rig.finished[request].reason is EndReason.LENGTH) is fits
    if fits:
        assert rig.answers[request] == [31], "max_tokens is what the limit leaves"


def test_refused_while_a_role_is_missing_or_draining():
    rig = Joined(hello=False)
    rig.submit(8, 4)
    took(rig, RouterState.ABSENT, RouterFact.SUBMIT_REFUSED)
    assert rig.finished[1].refusal == Refusal(RefusalCode.UNAVAILABLE)
    rig = Joined()
    rig.feed("r", events.DrainRequested())
    rig.submit(8, 4)
    assert rig.finished[1].refusal == Refusal(RefusalCode.DRAINING)


def test_queue_and_requests_are_bounded():
    rig = queued()
    rig.router.config = replace(rig.router.config, queue_max=1)
    rig.submit(8, 4)
    assert rig.finished[3].refusal == BUSY
    rig.router.config = replace(rig.router.config, queue_max=9, requests_max=2)
    rig.submit(8, 4)
    assert rig.finished[4].refusal == BUSY


def test_choices_are_admitted_together_or_not_at_all():
    rig = Joined(queue_max=3)
    assert rig.router.refusal_for(8, 4, choices=3) is None
    assert rig.router.refusal_for(8, 4, choices=4) == BUSY


def test_a_number_that_is_taken_fails_closed():
    rig = streaming()
    out = rig.feed("r", events.Submitted(1, 8, 4))
    took(rig, RouterState.STREAMING, RouterFact.SUBMIT_AGAIN)
    assert only(out, commands.FinishRequest).end.reason is EndReason.ILLEGAL
    with pytest.raises(InvariantError):
        rig.router.step(events.Submitted(9, 0, 4))


# ---------------------------------------------------------------- placing
def test_the_least_loaded_nodes_are_picked():
    rig = Joined(prefills=2, decodes=2)
    rig.hold("link")
    for _ in range(4):
        rig.submit(8, 4)
    asked = [c for _, _, c in rig.log if isinstance(c, commands.SendReserve)]
    assert [(c.decode.node, c.writer.node) for c in asked] == [("d0", "p0"), ("d1", "p1")] * 2
    rig.release("link")
    rig.run().assert_home()


def test_a_draining_node_is_not_picked():
    rig = Joined(decodes=2)
    rig.feed("r", events.Hello(rig.peer("d0"), Role.DECODE, 64, 16, draining=True))
    rig.submit(8, 4)
    asked = [c for _, _, c in rig.log if isinstance(c, commands.SendReserve)]
    assert [c.decode.node for c in asked] == ["d1"]


def test_the_queue_is_first_in_first_out_and_moves_when_there_is_room():
    rig = queued()
    rig.submit(4, 2)
    assert rig.router.queue == [2, 3]
    rig.release("step")
    rig.run()
    rig.greet_all()
    rig.run().assert_home()
    first = [c.request for _, _, c in rig.log if isinstance(c, commands.DeliverToken)]
    assert list(dict.fromkeys(first)) == [1, 2, 3]


def test_a_reservation_leads_to_prefill():
    rig = reserving()
    pages = ()
    out = said_by_decode(rig, events.Reserved, LeaseId(3, 1), pages)
    took(rig, RouterState.RESERVING, RouterFact.RESERVED)
    assert only(out, commands.SendPrefill).lease == LeaseId(3, 1)
    said_by_decode(rig, events.Reserved, LeaseId(3, 1), pages)
    took(rig, RouterState.PREFILLING, RouterFact.RESERVED)
    rig = streaming()
    said_by_decode(rig, events.Reserved, LeaseId(3, 1), pages)
    took(rig, RouterState.STREAMING, RouterFact.RESERVED)


def test_not_now_goes_back_to_the_head_of_the_queue_after_an_abort():
    rig = reserving()
    out = said_by_decode(rig, events.ReserveRefused, BUSY)
    took(rig, RouterState.RESERVING, RouterFact.RESERVE_BUSY)
    assert [c.peer.node for c in out if isinstance(c, commands.SendAbort)] == ["d0", "p0"]
    assert newest(rig).state is RouterState.QUEUED
    rig.feed("r", rig.hello_of(rig.seats["p0"]))
    assert newest(rig).state is RouterState.QUEUED, "only decode can say that it has room"
    out = rig.feed("r", rig.hello_of(rig.seats["d0"]))
    assert only(out, commands.SendReserve).attempt.number == 2


def test_a_hello_without_room_does_not_wake_the_queue():
    rig = reserving()
    said_by_decode(rig, events.ReserveRefused, BUSY)
    out = rig.feed("r", events.Hello(rig.peer("d0"), Role.DECODE, 64, 0))
    assert not out


def test_refusals_mark_the_node_that_is_to_blame():
    rig = reserving()
    said_by_decode(rig, events.ReserveRefused, Refusal(RefusalCode.STALE))
    assert rig.router.nodes[rig.peer("p0")].is_full
    rig = reserving()
    said_by_decode(rig, events.ReserveRefused, Refusal(RefusalCode.DRAINING))
    assert rig.router.nodes[rig.peer("d0")].is_draining


def test_a_refusal_for_good_is_reported():
    rig = reserving()
    refusal = Refusal(RefusalCode.CONTEXT_LENGTH, 19, 16)
    out = said_by_decode(rig, events.ReserveRefused, refusal)
    took(rig, RouterState.RESERVING, RouterFact.RESERVE_REFUSED)
    took(rig, RouterState.CLOSING, RouterFact.OVER)
    assert refusal_of(out) == refusal
    assert not rig.router.requests


def test_prefill_that_is_busy_is_another_attempt():
    rig = prefilling()
    out = ended(rig, EndReason.REFUSED, refusal=BUSY)
    took(rig, RouterState.PREFILLING, RouterFact.ENDED_BUSY)
    assert not [c for c in out if isinstance(c, commands.SendReserve)]
    out = rig.feed("r", rig.hello_of(rig.seats["p0"]))
    assert only(out, commands.SendReserve).attempt.number == 2


def test_prefill_that_refuses_for_good_is_reported():
    rig = prefilling()
    refusal = Refusal(RefusalCode.CONTEXT_LENGTH, 99, 64)
    out = ended(rig, EndReason.REFUSED, refusal=refusal)
    took(rig, RouterState.PREFILLING, RouterFact.ENDED)
    assert refusal_of(out) == refusal


# ---------------------------------------------------------------- tokens
def test_tokens_are_delivered_in_their_order_only():
    rig = prefilling()
    out = said_by_decode(rig, events.TokenMade, 10)
    took(rig, RouterState.PREFILLING, RouterFact.TOKEN)
    assert only(out, commands.DeliverToken) == commands.DeliverToken(1, 10)
    assert said_by_decode(rig, events.TokenMade, 10) == []
    took(rig, RouterState.STREAMING, RouterFact.TOKEN_MISPLACED)
    said_by_decode(rig, events.TokenMade, 11)
    took(rig, RouterState.STREAMING, RouterFact.TOKEN)
    assert rig.router.counts["tokens_dropped"] == 1
    assert ended(rig, EndReason.STOP)[-1].end == End(EndReason.STOP), "a repeated token is no loss"


def test_an_answer_with_a_hole_is_no_cheerful_stop():
    rig = prefilling()
    said_by_decode(rig, events.TokenMade, 11)
    took(rig, RouterState.PREFILLING, RouterFact.TOKEN_MISPLACED)
    out = ended(rig, EndReason.STOP)
    assert only(out, commands.FinishRequest).end.reason is EndReason.TRANSFER


def test_a_lost_last_token_is_seen():
    rig = prefilling()
    said_by_decode(rig, events.TokenMade, 10)
    out = ended(rig, EndReason.STOP, next_position=12)
    assert only(out, commands.FinishRequest).end.reason is EndReason.TRANSFER
    rig = prefilling()
    said_by_decode(rig, events.TokenMade, 10)
    out = ended(rig, EndReason.STOP, next_position=11)
    assert only(out, commands.FinishRequest).end.reason is EndReason.STOP
    rig = prefilling()
    said_by_decode(rig, events.TokenMade, 10)
    out = ended(rig, EndReason.LENGTH)
    assert only(out, commands.FinishRequest).end.reason is EndReason.TRANSFER, "nine were asked for"


def test_tokens_of_another_attempt_are_dropped_and_aborted():
    rig = queued()
    said_by_decode(rig, events.TokenMade, 8, number=7)
    took(rig, RouterState.QUEUED, RouterFact.STRAY_WORK)
    for stage, state in ALIVE:
        rig = stage()
        out = said_by_decode(rig, events.TokenMade, 10, number=7)
        took(rig, state, RouterFact.STRAY_WORK)
        assert out == [commands.SendAbort(rig.peer("d0"), replace(newest(rig).attempt, number=7))]
    rig = router_closing()
    said_by_decode(rig, events.TokenMade, 10, number=7)
    took(rig, RouterState.CLOSING, RouterFact.STRAY_WORK)
    rig = Joined()
    attempt = AttemptId(rig.peer("r").incarnation, 9, 1)
    assert rig.feed("r", events.TokenMade(rig.peer("d0"), attempt, 3))
    took(rig, RouterState.ABSENT, RouterFact.STRAY_WORK)
    assert rig.feed("r", events.Reserved(rig.peer("d0"), attempt, LeaseId(3, 1), ()))
    took(rig, RouterState.ABSENT, RouterFact.STRAY_WORK)


def test_ends_of_another_attempt_are_counted():
    rig = queued()
    said_by_decode(rig, events.ReserveRefused, BUSY, number=7)
    took(rig, RouterState.QUEUED, RouterFact.STRAY_END)
    for stage, state in (*ALIVE, (router_closing, RouterState.CLOSING)):
        rig = stage()
        assert said_by_decode(rig, events.AttemptEnded, End(EndReason.STOP), number=7) == []
        took(rig, state, RouterFact.STRAY_END)
    rig = Joined()
    attempt = AttemptId(rig.peer("r").incarnation, 9, 1)
    rig.feed("r", events.AttemptEnded(rig.peer("d0"), attempt, End(EndReason.STOP)))
    took(rig, RouterState.ABSENT, RouterFact.STRAY_END)


def test_who_does_not_speak_is_counted():
    rig = streaming()
    attempt = newest(rig).attempt
    other = replace(rig.peer("d0"), incarnation=70)
    for event in (
        events.TokenMade(other, attempt, 11),
        events.Reserved(other, attempt, LeaseId(70, 1), ()),
        events.ReserveRefused(other, attempt, BUSY),
        events.AttemptEnded(other, attempt, End(EndReason.STOP)),
        events.AttemptEnded(rig.peer("d0"), replace(attempt, incarnation=70), End(EndReason.STOP)),
        events.Hello(replace(rig.peer("d0"), incarnation=1), Role.DECODE, 64, 16),
    ):
        assert rig.feed("r", event) == []
    assert rig.router.counts["unknown_sender"] == 6
    rig.feed("r", events.Hello(other, Role.DECODE))
    rig.feed("r", events.Hello(replace(rig.peer("r"), node="r2"), Role.ROUTER))
    assert rig.router.counts["misdirected"] == 2


# ---------------------------------------------------------------- another attempt
def test_preempted_is_recomputed_ahead_of_the_queue():
    for stage, state in ALIVE:
        rig = stage()
        record = newest(rig)
        out = ended(rig, EndReason.PREEMPTED)
        took(rig, state, RouterFact.PREEMPTED)
        asked = only(out, commands.SendReserve)
        assert (asked.attempt.number, asked.tokens) == (2, 10 + record.delivered_tokens)
        assert asked.tokens + asked.max_tokens == 19
        kinds = [type(c) for c in out]
        assert kinds.index(commands.SendAbort) < kinds.index(commands.SendReserve)


def test_an_answer_that_has_begun_waits_as_long_as_the_request_may_take():
    for stage, _ in ALIVE:
        rig = stage()
        record = newest(rig)
        out = ended(rig, EndReason.PREEMPTED)
        queue_timers = [
            command
            for command in out
            if isinstance(command, commands.SetTimer) and command.timer.kind is TimerKind.QUEUE
        ]
        assert len(queue_timers) == (0 if record.delivered_tokens else 1)
        before = rig.feed("r", events.Expired(Timer(TimerKind.QUEUE, record.request), 1))
        assert before == [], "an earlier queue deadline is outdated"
        assert not record.is_overdue


def test_preempted_after_the_last_token_is_the_end():
    rig = Joined()
    rig.hold("step")
    rig.submit(10, 1)
    rig.hold(("d0", "d0"))
    rig.run()
    out = ended(rig, EndReason.PREEMPTED)
    assert only(out, commands.FinishRequest).end == End(EndReason.LENGTH)


def test_one_retry_when_decode_dies_and_nothing_was_streamed():
    for stage, state in ALIVE[:2]:
        rig = stage()
        rig.feed("r", events.PeerLost(rig.peer("d0")))
        took(rig, state, RouterFact.NODE_LOST_RETRY)
        assert newest(rig).retries == 1
        assert rig.router.limit_tokens is None
    rig = streaming()
    out = rig.feed("r", events.PeerLost(rig.peer("d0")))
    took(rig, RouterState.STREAMING, RouterFact.NODE_LOST)
    assert only(out, commands.FinishRequest).end.reason is EndReason.PEER_LOST


def test_a_second_loss_is_the_end():
    rig = Joined(decodes=2)
    rig.hold("link")
    rig.submit(8, 4)
    rig.feed("r", events.PeerLost(rig.peer("d0")))
    assert newest(rig).decode == rig.peer("d1")
    out = rig.feed("r", events.PeerLost(rig.peer("d1")))
    took(rig, RouterState.RESERVING, RouterFact.NODE_LOST)
    assert only(out, commands.FinishRequest).end.reason is EndReason.PEER_LOST


def test_prefill_lost_before_the_first_token_only():
    rig = prefilling()
    rig.feed("r", events.PeerLost(rig.peer("p0")))
    took(rig, RouterState.PREFILLING, RouterFact.NODE_LOST_RETRY)
    rig = streaming()
    assert rig.feed("r", events.PeerLost(rig.peer("p0"))) == []
    rig = prefilling()
    newest(rig).retries = 1
    rig.feed("r", events.PeerLost(rig.peer("p0")))
    took(rig, RouterState.PREFILLING, RouterFact.NODE_LOST)
    assert newest(rig).state is RouterState.CLOSING, "decode has yet to say that its lease ended"


def test_newer_node_supersedes_the_older():
    rig = reserving()
    rig.feed("r", events.Hello(replace(rig.peer("d0"), incarnation=70), Role.DECODE, 64, 16))
    took(rig, RouterState.RESERVING, RouterFact.NODE_LOST_RETRY)
    took(rig, RouterState.QUEUED, RouterFact.ROOM)
    assert newest(rig).decode.incarnation == 70


def test_decode_says_that_the_writer_was_lost():
    for stage, state in ALIVE[:2]:
        rig = stage()
        ended(rig, EndReason.PEER_LOST)
        took(rig, state, RouterFact.ENDED_RETRY)
    rig = streaming()
    out = ended(rig, EndReason.PEER_LOST)
    took(rig, RouterState.STREAMING, RouterFact.ENDED)
    assert only(out, commands.FinishRequest).end.reason is EndReason.PEER_LOST


def test_a_restarted_decode_serves_the_retry():
    rig = prefilling()
    rig.crash("d0")
    rig.release("write")
    rig.run()
    rig.greet_all()
    rig.run().assert_home()
    assert rig.answers[1] == list(range(10, 19))
    assert rig.router.counts["retried"] == 1


# ---------------------------------------------------------------- ends
def test_every_end_of_decode_is_passed_on():
    for reason in (EndReason.STOP, EndReason.INTEGRITY, EndReason.TRANSFER, EndReason.EXECUTOR):
        rig = streaming()
        out = ended(rig, reason)
        took(rig, RouterState.STREAMING, RouterFact.ENDED)
        assert only(out, commands.FinishRequest).end.reason is reason
        assert not rig.router.requests
    rig = reserving()
    ended(rig, EndReason.DEADLINE)
    took(rig, RouterState.RESERVING, RouterFact.ENDED)


def test_client_gone_in_every_state():
    rig = Joined()
    assert rig.feed("r", events.ClientGone(5)) == []
    took(rig, RouterState.ABSENT, RouterFact.CLIENT_GONE)
    rig = queued()
    out = rig.feed("r", events.ClientGone(2))
    took(rig, RouterState.QUEUED, RouterFact.CLIENT_GONE)
    assert 2 not in rig.router.requests
    assert only(out, commands.FinishRequest).end == End(EndReason.CLIENT_GONE)
    for stage, state in ALIVE:
        rig = stage()
        out = rig.feed("r", events.ClientGone(1))
        took(rig, state, RouterFact.CLIENT_GONE)
        told = [c.peer.node for c in out if isinstance(c, commands.SendAbort)]
        assert told == (["d0"] if state is RouterState.STREAMING else ["d0", "p0"])
        assert rig.feed("r", events.ClientGone(1)) == []
        took(rig, RouterState.CLOSING, RouterFact.CLIENT_GONE)


def test_request_deadline_in_every_state():
    rig = queued()
    rig.fire_timer("r", next(t for t in rig.seats["r"].timers if t.timer == Timer(TimerKind.REQUEST, 2)))
    took(rig, RouterState.QUEUED, RouterFact.REQUEST_DEADLINE)
    for stage, state in ALIVE:
        rig = stage()
        rig.expire("r", TimerKind.REQUEST)
        took(rig, state, RouterFact.REQUEST_DEADLINE)
        assert rig.finished[1].reason is EndReason.DEADLINE
        rig.expire("r", TimerKind.REQUEST)
        took(rig, RouterState.CLOSING, RouterFact.REQUEST_DEADLINE)
        assert not rig.router.requests, "a lost answer does not keep the record for ever"


def test_queue_deadline_is_503():
    rig = queued()
    rig.expire("r", TimerKind.QUEUE)
    took(rig, RouterState.QUEUED, RouterFact.QUEUE_DEADLINE)
    assert rig.finished[2].refusal == Refusal(RefusalCode.DEADLINE)


def test_queue_deadline_counts_through_attempts():
    for stage, state in ALIVE:
        rig = stage()
        rig.expire("r", TimerKind.QUEUE)
        took(rig, state, RouterFact.QUEUE_DEADLINE)
    rig = router_closing()
    rig.expire("r", TimerKind.QUEUE)
    took(rig, RouterState.CLOSING, RouterFact.QUEUE_DEADLINE)
    rig = reserving()
    rig.expire("r", TimerKind.QUEUE)
    out = said_by_decode(rig, events.ReserveRefused, BUSY)
    assert refusal_of(out) == Refusal(RefusalCode.DEADLINE)
    rig = prefilling()
    rig.expire("r", TimerKind.QUEUE)
    out = ended(rig, EndReason.REFUSED, refusal=BUSY)
    assert refusal_of(out) == Refusal(RefusalCode.DEADLINE)


def test_closing_ends_with_decode_word_or_its_death():
    rig = router_closing()
    said_by_decode(rig, events.Reserved, LeaseId(3, 1), ())
    took(rig, RouterState.CLOSING, RouterFact.RESERVED)
    assert said_by_decode(rig, events.TokenMade, 10) == []
    took(rig, RouterState.CLOSING, RouterFact.TOKEN)
    ended(rig, EndReason.CLIENT_GONE)
    took(rig, RouterState.CLOSING, RouterFact.ENDED)
    took(rig, RouterState.CLOSING, RouterFact.OVER)
    rig = router_closing()
    said_by_decode(rig, events.ReserveRefused, BUSY)
    took(rig, RouterState.CLOSING, RouterFact.RESERVE_REFUSED)
    rig = router_closing()
    rig.feed("r", events.PeerLost(rig.peer("d0")))
    took(rig, RouterState.CLOSING, RouterFact.NODE_LOST)
    assert rig.router.nodes.keys() == {rig.peer("p0")}


def test_load_is_given_back():
    for stage in (reserving, prefilling, running):
        rig = stage()
        rig.leave(1)
        rig.held.clear()
        rig.run().assert_home()
        assert {node.pages for node in rig.router.nodes.values()} == {0}


def test_stale_timers_are_ignored():
    rig = streaming()
    assert rig.feed("r", events.Expired(Timer(TimerKind.REQUEST, 1), 9)) == []
    assert rig.feed("r", events.Expired(Timer(TimerKind.REQUEST, 77), 1)) == []
    assert rig.feed("r", events.PageWanted(LeaseId(3, 1))) == []
    assert rig.router.counts["stale_timer"] == 2


def test_what_metrics_read():
    rig = queued()
    assert rig.router.request_counts["queued"] == 1
    assert rig.router.request_counts["streaming"] == 1


# ---------------------------------------------------------------- decisions seen wrong
def test_a_next_attempt_without_an_abort_is_seen():
    class Forgetful(Decisions):
        def aborts_before_next_attempt(self):
            return False

    rig = reserving(decisions=Forgetful())
    out = said_by_decode(rig, events.ReserveRefused, BUSY)
    assert not [c for c in out if isinstance(c, commands.SendAbort)]


def test_waiting_on_decode_is_streaming_for_the_router():
    assert waiting().router.requests[1].state is RouterState.STREAMING
