"""The prefill core, row by row: each test is a short sequence over the joined rig."""

from dataclasses import replace

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import computing, prefill_closing, prefilling, sending
from tests.protocol.test_decode import only

from kvfence.protocol import Decisions, PageState, PrefillFact, PrefillState, commands, events
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.laws import check_laws
from kvfence.protocol.words import (
    AttemptId,
    Done,
    EndReason,
    Failed,
    Failure,
    LeaseId,
    PageRef,
    Refusal,
    RefusalCode,
    Refused,
    Role,
    TimerKind,
)

ABORTED = Failed(Failure.ABORTED)


def took(rig, state, fact):
    """The last event took this row on prefill."""
    rows = [(t.state, t.fact) for t in rig.prefill.trail]
    assert (state, fact) in rows, rows


def handed(rig, sequence=40, tokens=8, request=50, pages=None, **changes):
    """A Prefill of its own, past router and decode."""
    decode = rig.peer("d0")
    n = -(-tokens // 4) if pages is None else pages
    event = events.Prefill(
        sender=rig.peer("r"),
        attempt=AttemptId(rig.peer("r").incarnation, request, 1),
        decode=decode,
        lease=LeaseId(decode.incarnation, sequence),
        pages=tuple(PageRef(i, 1) for i in range(n)),
        tokens=tuple(range(tokens)),
        domain="tenant",
    )
    return replace(event, **changes)


def outcome_of(out):
    return only(out, commands.SendClosed).outcome


def quiet_rig(**kwargs):
    """A rig for events that are fed to prefill alone."""
    rig = Joined(**kwargs)
    rig.hold("StartPrefill", "write", ("p0", "d0"))
    return rig


def batches(rig):
    return [c for _, _, c in rig.log if isinstance(c, commands.PostBatch)]


class Shelf:
    """A prefix index that keeps one run of pages a domain, and evicts from its end."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.runs = {}

    def match(self, domain, tokens):
        known, pages = self.runs.get(domain, ((), ()))
        n = 0
        while n < len(pages) and (n + 1) * 4 < len(tokens) and tokens[: (n + 1) * 4] == known[: (n + 1) * 4]:
            n += 1
        return tuple(pages[:n])

    def publish(self, domain, tokens, pages):
        if domain in self.runs:
            return ()
        self.runs[domain] = (tuple(tokens), tuple(ref.page for ref in pages))
        return self.runs[domain][1]

    def evict(self, n):
        out = []
        for domain, (tokens, pages) in list(self.runs.items()):
            kept = list(pages)
            while kept and len(out) < n and self.ledger.state[kept[-1]] == PageState.CACHED:
                out.append(kept.pop())
            self.runs[domain] = (tokens, tuple(kept))
        return tuple(out)

    def forget(self, page):
        for domain, (tokens, pages) in self.runs.items():
            if page in pages:
                self.runs[domain] = (tokens, pages[: pages.index(page)])


# ---------------------------------------------------------------- ABSENT
def test_prefill_leases_all_its_pages_at_once():
    rig = quiet_rig()
    out = rig.feed("p0", handed(rig, tokens=9))
    took(rig, PrefillState.ABSENT, PrefillFact.PREFILL_FITS)
    start = only(out, commands.StartPrefill)
    assert (len(start.pages), start.cached_tokens, start.owner) == (3, 0, 1)
    assert rig.prefill.ledger.count(PageState.OPEN) == 3


def test_a_prompt_longer_than_the_pool_is_refused_never_replaced():
    rig = quiet_rig(prefill_pages=2)
    out = rig.feed("p0", handed(rig, tokens=9))
    took(rig, PrefillState.ABSENT, PrefillFact.PREFILL_REFUSED)
    assert outcome_of(out) == Refused(Refusal(RefusalCode.CONTEXT_LENGTH, 9, 8))
    assert rig.feed("p0", handed(rig, tokens=8, sequence=41, request=51))


def test_refusals_that_are_not_for_good():
    rig = quiet_rig(prefill_pages=2)
    rig.feed("p0", handed(rig, 40, request=50))
    assert outcome_of(rig.feed("p0", handed(rig, 41, request=51))) == Refused(Refusal(RefusalCode.BUSY))
    assert outcome_of(rig.feed("p0", handed(rig, 42, request=50))) == Refused(Refusal(RefusalCode.STALE))
    rig.feed("p0", events.DrainRequested())
    out = rig.feed("p0", handed(rig, 43, request=53))
    assert outcome_of(out) == Refused(Refusal(RefusalCode.DRAINING))


def test_leases_are_bounded():
    rig = quiet_rig()
    rig.prefill.config = replace(rig.prefill.config, leases_max=1)
    rig.feed("p0", handed(rig, 40, request=50))
    assert outcome_of(rig.feed("p0", handed(rig, 41, request=51))) == Refused(Refusal(RefusalCode.BUSY))


def test_wrong_page_counts_are_illegal():
    rig = quiet_rig()
    assert outcome_of(rig.feed("p0", handed(rig, pages=1))) == Failed(Failure.ILLEGAL)
    out = rig.feed("p0", handed(rig, 41, tokens=0, pages=0))
    assert outcome_of(out) == Failed(Failure.ILLEGAL)


def test_abort_before_prefill_refuses_it():
    rig = quiet_rig()
    event = handed(rig)
    rig.feed("p0", events.Abort(rig.peer("r"), event.attempt))
    took(rig, PrefillState.ABSENT, PrefillFact.ABORT)
    assert outcome_of(rig.feed("p0", event)) == Refused(Refusal(RefusalCode.STALE))


def test_tombstones_are_bounded():
    rig = quiet_rig()
    rig.prefill.config = replace(rig.prefill.config, tombstones_max=2)
    for request in (1, 2, 3):
        rig.feed("p0", events.Abort(rig.peer("r"), AttemptId(1, request, 1)))
    assert len(rig.prefill.over) == 2


def test_close_before_prefill_is_recorded_and_refuses_it():
    rig = quiet_rig()
    event = handed(rig)
    out = rig.feed("p0", events.Close(rig.peer("d0"), event.lease))
    took(rig, PrefillState.ABSENT, PrefillFact.CLOSE)
    assert outcome_of(out) == ABORTED
    out = rig.feed("p0", event)
    took(rig, PrefillState.ABSENT, PrefillFact.PREFILL_LATE)
    assert outcome_of(out) == ABORTED
    assert not rig.prefill.leases


def test_below_the_lowest_live_lease_everything_is_refused_and_forgotten():
    rig = quiet_rig()
    rig.feed("p0", events.Close(rig.peer("d0"), LeaseId(3, 40)))
    rig.feed("p0", events.LowestLive(rig.peer("d0"), 41))
    memory = rig.prefill.memory[rig.peer("d0")]
    assert memory.outcomes == {}
    assert rig.feed("p0", handed(rig, 40)) == []
    assert rig.feed("p0", events.Close(rig.peer("d0"), LeaseId(3, 40))) == []
    assert only(rig.feed("p0", handed(rig, 41)), commands.StartPrefill)
    rig.feed("p0", events.LowestLive(rig.peer("d0"), 5))
    assert memory.floor == 41, "the floor never sinks"


def test_what_is_said_of_an_unknown_lease_is_counted():
    rig = quiet_rig()
    lease = LeaseId(3, 9)
    said = (
        (events.ChunkComputed(lease, 4), PrefillFact.CHUNK),
        (events.ExecutorFailed(lease, "x"), PrefillFact.EXECUTOR_FAILED),
        (events.WriteCompleted(lease, 1), PrefillFact.WRITE_STRAY),
        (events.WriteFailed(lease, 1), PrefillFact.WRITE_STRAY),
    )
    for event, fact in said:
        assert rig.feed("p0", event) == []
        took(rig, PrefillState.ABSENT, fact)
    out = rig.feed("p0", events.StepLaunched(1, (lease,)))
    assert out == [commands.StopPrefill(lease)]
    assert rig.prefill.counts["illegal"] == 1


def test_who_does_not_speak_is_counted():
    rig = quiet_rig()
    decode, router = rig.peer("d0"), rig.peer("r")
    strangers = (
        handed(rig, sender=replace(router, incarnation=50)),
        handed(rig, attempt=AttemptId(77, 1, 1)),
        handed(rig, lease=LeaseId(77, 1)),
        handed(rig, decode=replace(decode, incarnation=2), lease=LeaseId(2, 1)),
        events.Abort(replace(router, incarnation=50), AttemptId(1, 1, 1)),
        events.Close(replace(decode, incarnation=50), LeaseId(50, 1)),
        events.Close(decode, LeaseId(50, 1)),
        events.LowestLive(replace(decode, incarnation=50), 3),
        events.Hello(replace(decode, incarnation=1), Role.DECODE, 64, 16),
    )
    for event in strangers:
        assert rig.feed("p0", event) == []
    assert rig.prefill.counts["unknown_sender"] == len(strangers)
    assert rig.feed("p0", events.Hello(replace(decode, node="p9"), Role.PREFILL)) == []
    assert rig.prefill.counts["misdirected"] == 1


def test_a_prefill_introduces_a_decode_node_that_has_not_said_hello():
    rig = quiet_rig()
    new = replace(rig.peer("d0"), node="d9", incarnation=60)
    assert only(rig.feed("p0", handed(rig, decode=new, lease=LeaseId(60, 1))), commands.StartPrefill)


def test_a_newer_decode_supersedes_the_older():
    rig = computing()
    old = rig.peer("d0")
    new = replace(old, incarnation=60)
    out = rig.feed("p0", handed(rig, decode=new, lease=LeaseId(60, 1)))
    took(rig, PrefillState.COMPUTING, PrefillFact.DECODE_LOST)
    assert only(out, commands.DestroyConnection).peer == old
    assert only(out, commands.StartPrefill).lease == LeaseId(60, 1)
    rig.feed("p0", events.ConnectionDestroyed(old))
    assert list(rig.prefill.leases) == [LeaseId(60, 1)]


# ---------------------------------------------------------------- computing and posting
def test_pages_are_posted_as_they_are_sealed_in_bounded_batches():
    rig = Joined(chunk_tokens=12, batch_pages=2)
    rig.hold("write")
    rig.submit(22, 4)
    rig.run()
    assert [(b.first_ordinal, len(b.sources)) for b in batches(rig)] == [(0, 2), (2, 1)]
    rig.release("write")
    rig.run()
    assert [(b.first_ordinal, len(b.sources)) for b in batches(rig)] == [(0, 2), (2, 1), (3, 2), (5, 1)]
    rig.assert_home()


def test_chunks_may_cut_pages():
    rig = Joined(chunk_tokens=3)
    rig.submit(11, 3)
    rig.run().assert_home()
    assert rig.answers[1] == [11, 12, 13]


def test_closed_is_said_only_after_every_write_completed():
    rig = sending()
    first, second = rig.writes
    assert rig.feed("p0", events.WriteCompleted(rig.lease("p0").lease, first.command.batch)) == []
    took(rig, PrefillState.SENDING, PrefillFact.WRITTEN)
    out = rig.feed("p0", events.WriteCompleted(second.command.lease, second.command.batch))
    took(rig, PrefillState.SENDING, PrefillFact.ALL_WRITTEN)
    manifest = outcome_of(out).manifest
    assert (manifest.tokens, manifest.pages, manifest.first_position) == (14, 4, 14)
    assert len(only(out, commands.PagesFreed).pages) == 4
    out = rig.feed("p0", events.Close(rig.peer("d0"), first.command.lease))
    assert outcome_of(out) == Done(manifest), "said again, the same"


def test_prefill_repeated_is_idempotent_and_another_attempt_is_illegal():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        record = rig.lease("p0")
        event = handed(rig, lease=record.lease, attempt=record.attempt)
        assert rig.feed("p0", event) == []
        took(rig, state, PrefillFact.PREFILL_AGAIN)
        rig.feed("p0", handed(rig, lease=record.lease, request=77))
        took(rig, state, PrefillFact.PREFILL_OTHER)
        assert record.state is PrefillState.CLOSING
        rig.feed("p0", event)
        took(rig, PrefillState.CLOSING, PrefillFact.PREFILL_AGAIN)


def test_impossible_chunks_fail_closed():
    for done, first in ((8, None), (99, None), (14, None), (12, 7)):
        rig = computing()
        record = rig.lease("p0")
        out = rig.feed("p0", events.ChunkComputed(record.lease, done, first))
        took(rig, PrefillState.COMPUTING, PrefillFact.CHUNK_WRONG)
        assert record.outcome == Failed(Failure.ILLEGAL)
        assert only(out, commands.StopPrefill)


def test_executor_failure_closes():
    rig = computing()
    record = rig.lease("p0")
    rig.feed("p0", events.ExecutorFailed(record.lease, "out of memory"))
    took(rig, PrefillState.COMPUTING, PrefillFact.EXECUTOR_FAILED)
    rig.release("write", ("p0", "d0"))
    rig.run()
    assert rig.finished[1].reason is EndReason.EXECUTOR


def test_posting_bound_stops_posting_and_never_reposts():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage(batch_pages=1)
        record = rig.lease("p0")
        posted = record.posted_pages
        rig.expire("p0", TimerKind.BATCH)
        took(rig, state, PrefillFact.BATCH_DEADLINE)
        assert record.posted_pages == posted
        other, late = sorted(record.in_flight)
        assert record.stopped == {late}
        rig.feed("p0", events.WriteCompleted(record.lease, other))
        assert record.posted_pages == posted, "nothing is posted while a batch is past its bound"
        rig.writes.clear()
        rig.feed("p0", events.WriteCompleted(record.lease, late))
        rig.release("write", "StartPrefill", ("p0", "d0"), ("d0", "p0"))
    assert len({b.batch for b in batches(rig)}) == len(batches(rig))


def test_a_stale_batch_timer_is_ignored():
    rig = sending()
    timers = list(rig.seats["p0"].timers)
    rig.release("write")
    rig.run()
    for timer in timers:
        rig.fire_timer("p0", timer)
    assert rig.prefill.counts["stale_timer"] == len(timers)


# ---------------------------------------------------------------- ends
def test_abort_and_close_leave_writes_in_flight_alone():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        for fact in (PrefillFact.ABORT, PrefillFact.CLOSE):
            rig = stage()
            record = rig.lease("p0")
            event = (
                events.Abort(record.router, record.attempt)
                if fact is PrefillFact.ABORT
                else events.Close(record.decode, record.lease)
            )
            out = rig.feed("p0", event)
            took(rig, state, fact)
            assert not [c for c in out if isinstance(c, commands.SendClosed)]
            assert rig.prefill.ledger.count(PageState.CLOSING) == 4
            rig.release("write")
            rig.run()
            closed = [c for _, _, c in rig.log if isinstance(c, commands.SendClosed)]
            assert [c.outcome for c in closed] == [ABORTED], "exactly one Closed"
            assert rig.is_home("p0")


def test_below_the_lowest_live_lease_a_live_one_is_given_up():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        record = rig.lease("p0")
        rig.feed("p0", events.LowestLive(record.decode, record.lease.sequence + 1))
        took(rig, state, PrefillFact.FORGOTTEN)
        rig.feed("p0", events.LowestLive(record.decode, record.lease.sequence + 2))
        took(rig, PrefillState.CLOSING, PrefillFact.FORGOTTEN)


def test_lost_router_and_lost_decode():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        rig.feed("p0", events.PeerLost(rig.peer("r")))
        took(rig, state, PrefillFact.ROUTER_LOST)
        rig.feed("p0", events.PeerLost(rig.peer("d0")))
        took(rig, PrefillState.CLOSING, PrefillFact.DECODE_LOST)
        rig = stage()
        out = rig.feed("p0", events.PeerLost(rig.peer("d0")))
        took(rig, state, PrefillFact.DECODE_LOST)
        assert only(out, commands.DestroyConnection).peer == rig.peer("d0")
        rig.feed("p0", events.PeerLost(rig.peer("r")))
        took(rig, PrefillState.CLOSING, PrefillFact.ROUTER_LOST)
        assert rig.feed("p0", events.PeerLost(rig.peer("d0"))) == []


def test_a_failed_write_destroys_the_connection_and_is_never_said_to_be_closed():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        record = rig.lease("p0")
        out = rig.feed("p0", events.WriteFailed(record.lease, min(record.in_flight)))
        took(rig, state, PrefillFact.WRITE_FAILED)
        assert only(out, commands.DestroyConnection)
        assert not rig.is_home("p0"), "the transport may still read our pages"
        out = rig.feed("p0", events.ConnectionDestroyed(rig.peer("d0")))
        took(rig, PrefillState.CLOSING, PrefillFact.DESTROYED)
        assert rig.is_home("p0")
        assert not [c for c in out if isinstance(c, commands.SendClosed)]
        assert rig.feed("p0", events.Close(record.decode, record.lease)) == []
        assert rig.prefill.counts["unanswered_close"] == 1


def test_decode_gets_such_pages_back_by_the_cut():
    rig = sending()
    rig.fail(rig.writes[0])
    rig.release("write", ("p0", "d0"), ("d0", "p0"))
    rig.run()
    assert rig.is_home("p0")
    rig.expire("d0", TimerKind.LEASE)
    rig.run()
    assert rig.decode.ledger.count(PageState.CLOSING) == 5
    for _ in range(rig.decode.config.close_retries_max):
        rig.expire("d0", TimerKind.CLOSE_RETRY)
        rig.run()
    assert rig.is_home("d0")
    assert rig.finished[1].reason is EndReason.DEADLINE


def test_a_renewed_connection_breaks_the_silence():
    rig = sending()
    record = rig.lease("p0")
    rig.feed("p0", events.WriteFailed(record.lease, min(record.in_flight)))
    rig.feed("p0", events.ConnectionDestroyed(record.decode))
    out = rig.feed("p0", events.Reconnected(record.decode))
    took(rig, PrefillState.ABSENT, PrefillFact.RECONNECTED)
    assert outcome_of(out) == Failed(Failure.TRANSFER)
    assert rig.feed("p0", events.Reconnected(record.decode)) == []
    assert rig.feed("p0", events.Reconnected(replace(record.decode, node="d8"))) == []


def test_a_renewed_connection_is_heard_in_every_state():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        assert rig.feed("p0", events.Reconnected(rig.peer("d0"))) == []
        took(rig, state, PrefillFact.RECONNECTED)
    rig = sending()
    record = rig.lease("p0")
    rig.feed("p0", events.StepLaunched(70, (record.lease,)))
    rig.feed("p0", events.ConnectionDestroyed(record.decode))
    assert record.unproven
    out = rig.feed("p0", events.Reconnected(record.decode))
    took(rig, PrefillState.CLOSING, PrefillFact.RECONNECTED)
    assert outcome_of(out) == Failed(Failure.TRANSFER)


def test_a_batch_that_was_dropped_before_it_left_is_no_mystery():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        record = rig.lease("p0")
        batches_in_flight = sorted(record.in_flight)
        out = []
        for batch in batches_in_flight:
            out = rig.feed("p0", events.WriteFailed(record.lease, batch, quiet=True))
        if state is PrefillState.SENDING:
            took(rig, PrefillState.CLOSING, PrefillFact.WRITE_DROPPED)
        else:
            took(rig, state, PrefillFact.WRITE_DROPPED)
        assert outcome_of(out) == Failed(Failure.TRANSFER)
        assert not [c for _, _, c in rig.log if isinstance(c, commands.DestroyConnection)]


def test_the_connection_fails_every_lease_on_it():
    for state in (PrefillState.COMPUTING, PrefillState.SENDING):
        rig = Joined(chunk_tokens=8)
        rig.hold("write", ("p0", "d0"), ("d0", "p0"))
        rig.submit(8, 2)
        rig.run()
        if state is PrefillState.COMPUTING:
            rig.hold("StartPrefill")
        rig.submit(8, 2)
        rig.run()
        first, second = rig.prefill.leases.values()
        assert second.state is state
        out = rig.feed("p0", events.WriteFailed(first.lease, 1))
        took(rig, state, PrefillFact.CONNECTION_FAILED)
        if state is PrefillState.COMPUTING:
            assert outcome_of(out) == Failed(Failure.TRANSFER), "it had no write in flight: quiet"
        else:
            out = rig.feed("p0", events.WriteFailed(second.lease, 1))
            took(rig, PrefillState.CLOSING, PrefillFact.WRITE_FAILED)
            took(rig, PrefillState.CLOSING, PrefillFact.CONNECTION_FAILED)
            assert out == [], "the connection is being destroyed already"
        refused = rig.feed("p0", handed(rig))
        assert outcome_of(refused) == Refused(Refusal(RefusalCode.BUSY)), "not over a dying connection"


def test_a_connection_that_is_lost_by_itself_fails_its_leases():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        rig.feed("p0", events.ConnectionDestroyed(rig.peer("d0")))
        took(rig, state, PrefillFact.DESTROYED)
        assert rig.is_home("p0")
        assert rig.prefill.counts["silent"] == 1


def test_sources_wait_for_launched_steps():
    for stage, state in ((computing, PrefillState.COMPUTING), (sending, PrefillState.SENDING)):
        rig = stage()
        record = rig.lease("p0")
        rig.feed("p0", events.StepLaunched(70, (record.lease,)))
        took(rig, state, PrefillFact.LAUNCHED)
        rig.feed("p0", events.StepLaunched(71, (record.lease,)))
        rig.feed("p0", events.StepRetired(71))
        took(rig, state, PrefillFact.RETIRED)
        rig.feed("p0", events.Abort(record.router, record.attempt))
        for batch in sorted(record.in_flight):
            rig.feed("p0", events.WriteCompleted(record.lease, batch))
        took(rig, PrefillState.CLOSING, PrefillFact.WRITTEN)
        took(rig, PrefillState.CLOSING, PrefillFact.POSTS_QUIET)
        assert not rig.is_home("p0"), "closed towards decode, but a step still writes here"
        out = rig.feed("p0", events.Close(record.decode, record.lease))
        assert outcome_of(out) == ABORTED
        rig.feed("p0", events.StepLaunched(72, (record.lease,)))
        took(rig, PrefillState.CLOSING, PrefillFact.LAUNCHED)
        rig.feed("p0", events.StepRetired(72))
        out = rig.feed("p0", events.StepRetired(70))
        took(rig, PrefillState.CLOSING, PrefillFact.RETIRED)
        assert len(only(out, commands.PagesFreed).pages) == 4


def test_what_was_under_way_in_closing_changes_nothing():
    rig = prefill_closing()
    record = rig.lease("p0")
    rig.feed("p0", events.Abort(record.router, record.attempt))
    took(rig, PrefillState.CLOSING, PrefillFact.ABORT)
    rig.feed("p0", events.Close(record.decode, record.lease))
    took(rig, PrefillState.CLOSING, PrefillFact.CLOSE)
    rig.expire("p0", TimerKind.BATCH)
    took(rig, PrefillState.CLOSING, PrefillFact.BATCH_DEADLINE)
    rig.feed("p0", events.ExecutorFailed(record.lease, "late"))
    assert rig.prefill.counts["ignored_in_closing"] == 1
    rig = computing()
    record = rig.lease("p0")
    rig.feed("p0", events.Abort(record.router, record.attempt))
    rig.feed("p0", events.ChunkComputed(record.lease, 12))
    took(rig, PrefillState.CLOSING, PrefillFact.CHUNK)
    rig.feed("p0", events.ChunkComputed(record.lease, 14, 3))
    took(rig, PrefillState.CLOSING, PrefillFact.LAST_CHUNK)
    assert record.posted_pages == 2


def test_what_metrics_read():
    rig = prefill_closing()
    assert rig.prefill.lease_counts == {"absent": 0, "computing": 0, "sending": 0, "closing": 1}
    assert rig.prefill.closing_leases == [rig.lease("p0").lease]


# ---------------------------------------------------------------- prefix pages
SHARED = tuple(range(100, 113))


def test_full_pages_are_published_after_sealing_and_reused():
    rig = Joined(prefix=Shelf)
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    assert rig.prefill.ledger.count(PageState.CACHED) == 3
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run().assert_home()
    starts = [c for _, _, c in rig.log if isinstance(c, commands.StartPrefill)]
    assert [s.cached_tokens for s in starts] == [0, 12]
    assert rig.prefill.ledger.count(PageState.CACHED) == 3


def test_pins_are_held_until_writes_complete():
    rig = Joined(prefix=Shelf)
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    rig.hold("write")
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    record = rig.lease("p0")
    assert [rig.prefill.ledger.pins[p] for p in record.pinned] == [1, 1, 1]
    rig.leave(2)
    rig.run()
    assert rig.prefill.ledger.count(PageState.CACHED) == 0
    rig.release("write")
    rig.run().assert_home()
    assert rig.prefill.ledger.count(PageState.CACHED) == 3


def test_a_published_page_outlives_its_lease_while_pinned():
    rig = Joined(prefix=Shelf)
    rig.hold("write")
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    rig.release("write")
    rig.do(("write", 0))
    rig.do(("write", 0))
    (reader,) = rig.prefill.leases.values()
    assert [rig.prefill.ledger.owner_of(p) for p in reader.pinned] == [None] * 3
    assert rig.prefill.ledger.count(PageState.SEALED) >= 3
    rig.run().assert_home()
    assert rig.prefill.ledger.count(PageState.CACHED) == 3


def test_cached_pages_make_room():
    rig = Joined(prefix=Shelf, prefill_pages=4)
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    assert rig.prefill.ledger.count(PageState.FREE) == 1
    rig.submit(12, 2)
    rig.run().assert_home()
    assert rig.answers[2] == [12, 13]


def test_pinned_pages_are_not_evicted_for_another():
    rig = quiet_rig(prefix=Shelf, prefill_pages=4)
    rig.release("StartPrefill", "write", ("p0", "d0"))
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    rig.hold("write")
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    out = rig.feed("p0", handed(rig, tokens=8))
    assert outcome_of(out) == Refused(Refusal(RefusalCode.BUSY))


def test_an_index_that_evicts_less_than_it_has_is_survived():
    class Miser(Shelf):
        def evict(self, n):
            return ()

    rig = Joined(prefix=Miser, prefill_pages=4)
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    rig.hold("write")
    out = rig.feed("p0", handed(rig, tokens=8))
    assert outcome_of(out) == Refused(Refusal(RefusalCode.BUSY))
    assert rig.is_home("p0")


# ---------------------------------------------------------------- decisions seen wrong
def test_a_placeholder_instead_of_a_refusal_is_stopped_by_the_manifest():
    class Placeholder(Decisions):
        def admits(self, needed_tokens, limit_tokens):
            return True

        def fit_prompt(self, tokens, limit_tokens):
            return tokens[:1] if len(tokens) > limit_tokens else tokens

        def fits_node(self, needed_tokens, pool_tokens):
            return True

        def owed_pages(self, reserved, computed):
            return computed

    rig = Joined(prefill_pages=2, decode_pages=8, decisions=Placeholder(), checks_laws=False)
    rig.submit(20, 4)
    rig.run()
    assert rig.finished[1].reason is EndReason.INTEGRITY
    assert rig.answers[1] == []


def test_reposting_is_seen_by_the_rig():
    class Reposts(Decisions):
        def reposts_at_deadline(self):
            return True

    rig = sending(decisions=Reposts())
    with pytest.raises(AssertionError, match="out of order, or twice"):
        rig.expire("p0", TimerKind.BATCH)


def test_an_early_promise_breaks_law_4():
    class Hasty(Decisions):
        def posts_are_quiet(self, batches_in_flight, batches_lost):
            return True

    rig = sending(decisions=Hasty())
    record = rig.lease("p0")
    rig.prefill.step(events.Abort(record.router, record.attempt))
    with pytest.raises(InvariantError, match="quiet before free"):
        check_laws(rig.prefill)


def test_an_unpinned_match_breaks_law_8():
    class Unpinned(Decisions):
        def pins_match(self):
            return False

    rig = Joined(prefix=Shelf, prefill_pages=4, decisions=Unpinned())
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    with pytest.raises(InvariantError, match="sharing by domain"):
        rig.feed("p0", replace(handed(rig, tokens=13), tokens=SHARED))


def test_a_page_published_before_it_is_sealed_breaks_law_8():
    class Early(Decisions):
        def publishes(self, *, sealed):
            return True

    rig = quiet_rig(prefix=Shelf, decisions=Early())
    with pytest.raises(InvariantError, match="sharing by domain"):
        rig.feed("p0", replace(handed(rig, tokens=13), tokens=SHARED))


def test_prefilling_stage_is_what_the_router_sees():
    rig = prefilling()
    assert rig.lease("p0").state is PrefillState.SENDING
