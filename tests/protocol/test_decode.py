"""The decode core, row by row: each test is a short sequence over the joined rig."""

from dataclasses import replace

from tests.protocol.rig import Joined
from tests.protocol.stages import (
    decode_closing,
    reserved,
    running,
    two_rows,
    uncopied,
    verifying,
    waiting,
)

from kvfence.protocol import Decisions, DecodeFact, DecodeState, PageState, Reach, commands, events
from kvfence.protocol.words import (
    AttemptId,
    Done,
    End,
    EndReason,
    Failed,
    Failure,
    IntegrityReason,
    LeaseId,
    Manifest,
    PageRef,
    Refusal,
    RefusalCode,
    Refused,
    Role,
    Timer,
    TimerKind,
)

STALE = Refusal(RefusalCode.STALE)
BUSY = Refusal(RefusalCode.BUSY)
UNKNOWN = LeaseId(3, 999)


def took(rig, state, fact, name="d0"):
    """The last event took this row on decode."""
    rows = [(t.state, t.fact) for t in rig.core(name).trail]
    assert (state, fact) in rows, rows


def only(out, kind):
    """The one command of that kind."""
    found = [c for c in out if type(c) is kind]
    assert len(found) == 1, out
    return found[0]


def reserve(rig, attempt=None, tokens=8, max_tokens=4, writer=None):
    """Feed a Reserve of its own, past the router's core."""
    attempt = attempt or AttemptId(rig.peer("r").incarnation, 50, 1)
    writer = writer or rig.peer("p0")
    event = events.Reserve(rig.peer("r"), attempt, writer, tokens, max_tokens, b"h")
    return rig.feed("d0", event)


def refusal_of(out):
    return only(out, commands.SendReserveRefused).refusal


# ---------------------------------------------------------------- the whole way
def test_good_path_brings_everything_home():
    rig = Joined()
    request = rig.submit(10, 9)
    rig.run().assert_home()
    assert rig.answers[request] == list(range(10, 19))
    assert rig.finished[request] == End(EndReason.LENGTH)


def test_full_pool_request_fits_alone():
    """Prompt + max_tokens equal to the pool: the spare page takes the tail."""
    rig = Joined(decode_pages=4, prefill_pages=4, spare=1)
    request = rig.submit(15, 1)
    other = rig.submit(1, 15)
    rig.run().assert_home()
    assert rig.finished[request].reason is rig.finished[other].reason is EndReason.LENGTH


# ---------------------------------------------------------------- ABSENT
def test_reserve_leases_written_pages_and_a_tail():
    rig = Joined()
    out = reserve(rig, tokens=9)
    took(rig, DecodeState.ABSENT, DecodeFact.RESERVE_FITS)
    stamped = only(out, commands.StampPages).pages
    sent = only(out, commands.SendReserved).pages
    assert (len(stamped), len(sent)) == (4, 3)
    tail = rig.lease().tail
    assert tail in stamped
    assert tail not in sent, "no remote writer is ever given the tail page"
    kinds = [type(c) for c in out]
    assert kinds.index(commands.StampPages) < kinds.index(commands.SendReserved)


def test_reserve_refused_when_it_can_never_fit():
    rig = Joined(decode_pages=4)
    refusal = refusal_of(reserve(rig, tokens=12, max_tokens=5))
    assert refusal == Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=17, limit_tokens=16)
    took(rig, DecodeState.ABSENT, DecodeFact.RESERVE_REFUSED)
    assert only(reserve(rig, tokens=12, max_tokens=4), commands.SendReserved)


def test_reserve_refused_when_it_does_not_fit_now():
    rig = Joined(decode_pages=4, spare=1)
    reserve(rig, tokens=12)
    assert refusal_of(reserve(rig, AttemptId(1, 51, 1))) == BUSY


def test_reserve_refused_while_draining():
    rig = Joined()
    rig.feed("d0", events.DrainRequested())
    assert refusal_of(reserve(rig)) == Refusal(RefusalCode.DRAINING)


def test_reserve_refused_for_a_writer_that_is_older_or_not_known_yet():
    rig = Joined()
    old = rig.peer("p0")
    rig.crash("p0")
    assert refusal_of(reserve(rig, writer=old)) == STALE
    assert refusal_of(reserve(rig, writer=replace(old, incarnation=99))) == BUSY
    assert refusal_of(reserve(rig, writer=replace(old, node="p7"))) == BUSY


def test_reserve_refused_while_too_much_is_quarantined():
    rig = Joined(decode_pages=8)
    rig.hold(("d0", "p0"), ("p0", "d0"))
    reserve(rig, AttemptId(1, 50, 1), tokens=16)
    rig.feed("d0", events.Abort(rig.peer("r"), AttemptId(1, 50, 1)))
    assert rig.decode.quarantined_pages == 5
    assert refusal_of(reserve(rig, AttemptId(1, 51, 1), tokens=4)) == Refusal(RefusalCode.QUARANTINE)
    rig.feed("d0", events.Closed(rig.peer("p0"), LeaseId(3, 1), Failed(Failure.ABORTED)))
    assert only(reserve(rig, AttemptId(1, 51, 1), tokens=4), commands.SendReserved)


def test_reserve_refused_at_the_bound_of_leases():
    rig = Joined()
    rig.decode.config = replace(rig.decode.config, leases_max=1)
    reserve(rig, AttemptId(1, 50, 1))
    assert refusal_of(reserve(rig, AttemptId(1, 51, 1))) == BUSY


def test_abort_before_reserve_leaves_a_tombstone():
    rig = Joined()
    attempt = AttemptId(1, 50, 1)
    assert rig.feed("d0", events.Abort(rig.peer("r"), attempt)) == []
    took(rig, DecodeState.ABSENT, DecodeFact.ABORT)
    assert refusal_of(reserve(rig, attempt)) == STALE


def test_tombstones_are_bounded():
    rig = Joined()
    rig.decode.config = replace(rig.decode.config, tombstones_max=2)
    for request in (1, 2, 3):
        rig.feed("d0", events.Abort(rig.peer("r"), AttemptId(1, request, 1)))
    assert len(rig.decode.over) == 2
    assert only(reserve(rig, AttemptId(1, 1, 1)), commands.SendReserved)


def test_what_is_said_of_an_unknown_lease_is_counted():
    rig = Joined()
    said = (
        (events.Closed(rig.peer("p0"), UNKNOWN, Failed(Failure.ABORTED)), DecodeFact.CLOSED_STRAY),
        (events.PageWanted(UNKNOWN), DecodeFact.PAGE_FREE),
        (events.PageSealed(UNKNOWN, PageRef(0, 1)), DecodeFact.PAGE_STRAY),
        (events.TailCopied(UNKNOWN), DecodeFact.TAIL_STRAY),
        (events.RowFinished(UNKNOWN, End(EndReason.STOP)), DecodeFact.FINISHED),
        (events.GuardRejected(UNKNOWN, IntegrityReason.GUARD_OWNER, (0,)), DecodeFact.GUARD_BAD),
    )
    for event, fact in said:
        assert rig.feed("d0", event) == []
        took(rig, DecodeState.ABSENT, fact)
    assert rig.decode.counts["stray"] == len(said)


def test_page_wanted_for_an_unknown_lease_takes_nothing_from_a_full_pool():
    rig = waiting()
    rig.feed("d0", events.PageWanted(UNKNOWN))
    took(rig, DecodeState.ABSENT, DecodeFact.PAGE_SHORT)


def test_a_step_over_an_unknown_lease_fails_closed():
    rig = Joined()
    out = rig.feed("d0", events.StepLaunched(1, (UNKNOWN,)))
    assert out == [commands.StopRow(UNKNOWN)]
    assert [t.next_state for t in rig.decode.trail] == [DecodeState.CLOSING, DecodeState.ABSENT]
    assert rig.feed("d0", events.StepRetired(1)) == []


# ---------------------------------------------------------------- RESERVED
def test_reserve_is_idempotent_until_the_end():
    stages = (reserved, verifying, running)
    for stage in stages:
        rig = stage()
        lease = rig.lease()
        out = reserve(rig, lease.attempt, tokens=10)
        took(rig, lease.state, DecodeFact.RESERVE_AGAIN)
        assert only(out, commands.SendReserved).lease == lease.lease
    rig = waiting()
    reserve(rig, rig.lease(index=0).attempt)
    took(rig, DecodeState.WAITING, DecodeFact.RESERVE_AGAIN)
    rig = decode_closing()
    assert refusal_of(reserve(rig, rig.lease().attempt)) == STALE
    took(rig, DecodeState.CLOSING, DecodeFact.RESERVE_AGAIN)


def test_abort_waits_for_the_writer():
    rig = reserved()
    rig.leave(1)
    rig.run()
    record = rig.lease()
    assert record.state is DecodeState.CLOSING
    assert rig.decode.ledger.count(PageState.CLOSING) == 4
    rig.release(("d0", "p0"), ("r", "p0"))
    rig.run().assert_home()
    assert rig.finished[1] == End(EndReason.CLIENT_GONE)


def test_router_lost_aborts_its_attempts():
    for stage, state in ((reserved, "RESERVED"), (verifying, "VERIFYING"), (running, "RUNNING")):
        rig = stage()
        out = rig.feed("d0", events.PeerLost(rig.peer("r")))
        took(rig, DecodeState[state], DecodeFact.ROUTER_LOST)
        assert only(out, commands.SendEnded).end.reason is EndReason.PEER_LOST
    rig = waiting()
    rig.feed("d0", events.PeerLost(rig.peer("r")))
    took(rig, DecodeState.WAITING, DecodeFact.ROUTER_LOST)
    took(rig, DecodeState.CLOSING, DecodeFact.ROUTER_LOST)


def test_newer_router_supersedes_the_older():
    rig = reserved()
    old = rig.peer("r")
    rig.feed("d0", events.Hello(replace(old, incarnation=90), Role.ROUTER))
    took(rig, DecodeState.RESERVED, DecodeFact.ROUTER_LOST)
    assert rig.feed("d0", events.Hello(old, Role.ROUTER)) == []
    assert reserve(rig) == []
    assert rig.decode.counts["unknown_sender"] == 2


def test_lost_writer_is_cut_and_only_the_cut_frees():
    rig = reserved()
    writer = rig.peer("p0")
    out = rig.feed("d0", events.PeerLost(writer))
    took(rig, DecodeState.RESERVED, DecodeFact.WRITER_LOST)
    assert only(out, commands.AskCut).peer == writer
    assert only(out, commands.SendEnded).end.reason is EndReason.PEER_LOST
    for _ in range(3):
        rig.expire("d0", TimerKind.CLOSE_RETRY)
    assert rig.decode.ledger.count(PageState.CLOSING) == 4
    out = rig.feed("d0", events.Cut(writer))
    took(rig, DecodeState.CLOSING, DecodeFact.WRITER_CUT)
    took(rig, DecodeState.CLOSING, DecodeFact.QUIET)
    assert len(only(out, commands.PagesFreed).pages) == 4
    assert rig.decode.ledger.count(PageState.FREE) == rig.decode.ledger.total


def test_newer_writer_starts_the_cut_of_the_older():
    rig = reserved()
    old = rig.peer("p0")
    out = rig.feed("d0", events.Hello(replace(old, incarnation=90), Role.PREFILL, 64, 16))
    assert only(out, commands.AskCut).peer == old
    took(rig, DecodeState.RESERVED, DecodeFact.WRITER_LOST)
    assert rig.feed("d0", events.Hello(old, Role.PREFILL, 64, 16)) == []
    assert rig.decode.counts["unknown_sender"] == 1


def test_unknown_cut_keeps_the_pages_and_shows_the_writer():
    rig = reserved()
    writer = rig.peer("p0")
    rig.feed("d0", events.PeerLost(writer))
    rig.feed("d0", events.CutUnknown(writer))
    took(rig, DecodeState.CLOSING, DecodeFact.WRITER_LOST)
    assert rig.decode.uncut == [writer]
    assert rig.decode.ledger.count(PageState.CLOSING) == 4
    assert only(rig.feed("d0", events.PeerLost(writer)), commands.AskCut), "the operator may have killed it"
    rig.feed("d0", events.Cut(writer))
    assert rig.decode.uncut == []
    assert rig.decode.ledger.count(PageState.FREE) == rig.decode.ledger.total


def test_cut_without_a_loss_fails_open_leases():
    rig = reserved()
    out = rig.feed("d0", events.Cut(rig.peer("p0")))
    took(rig, DecodeState.RESERVED, DecodeFact.WRITER_CUT)
    assert only(out, commands.SendEnded).end.reason is EndReason.PEER_LOST
    assert rig.is_home("d0")
    assert rig.feed("d0", events.CutUnknown(rig.peer("p0"))) == []


def test_lost_writer_does_not_come_back_under_the_same_incarnation():
    rig = Joined()
    rig.feed("d0", events.PeerLost(rig.peer("p0")))
    rig.greet("p0")
    assert refusal_of(reserve(rig)) == STALE


def test_lease_deadline_closes_but_does_not_free():
    rig = reserved()
    rig.expire("d0", TimerKind.LEASE)
    took(rig, DecodeState.RESERVED, DecodeFact.LEASE_DEADLINE)
    assert rig.lease().end.reason is EndReason.DEADLINE
    assert rig.decode.ledger.count(PageState.CLOSING) == 4
    rig.release(("d0", "p0"))
    rig.run()
    assert rig.is_home("d0")
    rig.release(("r", "p0"))
    rig.run().assert_home()
    assert rig.prefill.counts["late_prefill"] == 1, "the Prefill that arrives after Close is refused"


def closed_done(rig, **changes):
    """A Closed(Done) for the newest lease whose manifest was changed."""
    record = rig.lease()

    manifest = Manifest(
        lease=record.lease,
        writer=record.writer,
        tokens=record.tokens,
        pages=len(record.pages),
        token_hash=record.token_hash,
        first_token=1,
        first_position=record.tokens,
    )
    return events.Closed(record.writer, record.lease, Done(replace(manifest, **changes)))


def test_each_field_of_the_manifest_is_compared():
    faults = {
        IntegrityReason.MANIFEST_TOKENS: {"tokens": 9},
        IntegrityReason.MANIFEST_PAGES: {"pages": 1},
        IntegrityReason.MANIFEST_HASH: {"token_hash": b"other"},
        IntegrityReason.MANIFEST_WRITER: {"lease": UNKNOWN},
        IntegrityReason.MANIFEST_POSITION: {"first_position": 11},
    }
    for reason, changes in faults.items():
        rig = reserved()
        out = rig.feed("d0", closed_done(rig, **changes))
        took(rig, DecodeState.RESERVED, DecodeFact.CLOSED_BAD)
        assert only(out, commands.SendEnded).end == End(EndReason.INTEGRITY, integrity=reason)
        assert rig.is_home("d0"), "the writer closed: the pages are quiet"
        assert rig.decode.counts[f"integrity_{reason.value}"] == 1
    rig = reserved()
    assert only(rig.feed("d0", closed_done(rig)), commands.VerifySeals)


def test_refusal_of_the_writer_is_reported():
    rig = reserved()
    record = rig.lease()
    refusal = Refusal(RefusalCode.CONTEXT_LENGTH, 10, 8)
    out = rig.feed("d0", events.Closed(record.writer, record.lease, Refused(refusal)))
    took(rig, DecodeState.RESERVED, DecodeFact.CLOSED_SHORT)
    assert only(out, commands.SendEnded).end == End(EndReason.REFUSED, refusal=refusal)
    assert rig.is_home("d0")


def test_failure_of_the_writer_is_reported_for_what_it_is():
    for failure in Failure:
        rig = reserved()
        record = rig.lease()
        out = rig.feed("d0", events.Closed(record.writer, record.lease, Failed(failure)))
        reason = only(out, commands.SendEnded).end.reason
        assert reason.value == ("transfer" if failure is Failure.ABORTED else failure.value)


def test_closed_of_another_incarnation_does_not_speak():
    rig = reserved()
    record = rig.lease()
    other = replace(record.writer, incarnation=77)
    assert rig.feed("d0", events.Closed(other, record.lease, Failed(Failure.ABORTED))) == []
    assert record.state is DecodeState.RESERVED
    assert rig.decode.counts["unknown_sender"] == 1


# ---------------------------------------------------------------- VERIFYING
def test_sealed_pages_start_a_row():
    rig = verifying()
    assert rig.decode.ledger.count(PageState.SEALED) == 0
    out = rig.feed("d0", events.SealsVerified(rig.lease().lease))
    took(rig, DecodeState.VERIFYING, DecodeFact.SEALS_GOOD)
    row = only(out, commands.StartRow)
    assert (len(row.pages), row.manifest.tokens) == (3, 10)
    assert rig.decode.ledger.state[row.tail.page] == PageState.OPEN
    assert rig.decode.ledger.count(PageState.SEALED) == 3


def test_bad_seals_never_start():
    rig = verifying()
    record = rig.lease()
    page = record.pages[0].page
    out = rig.feed("d0", events.SealsRejected(record.lease, IntegrityReason.SEAL_FOREIGN, (page, 999)))
    took(rig, DecodeState.VERIFYING, DecodeFact.SEALS_BAD)
    assert [type(c) for c in out if isinstance(c, commands.StartRow)] == []
    assert only(out, commands.SendEnded).end.integrity is IntegrityReason.SEAL_FOREIGN
    assert rig.decode.ledger.state[page] == PageState.POISONED
    assert rig.decode.quarantined_pages == 1


def test_unwritten_stamp_is_no_poison():
    rig = verifying()
    record = rig.lease()
    rig.feed("d0", events.SealsRejected(record.lease, IntegrityReason.SEAL_UNWRITTEN))
    assert rig.decode.ledger.count(PageState.POISONED) == 0
    assert rig.is_home("d0")


def test_poison_waits_for_every_writer_of_its_time():
    rig = Joined(prefills=2)
    rig.hold("VerifySeals")
    rig.submit(10, 9)
    rig.run()
    record = rig.lease()
    page = record.pages[1].page
    rig.feed("d0", events.SealsRejected(record.lease, IntegrityReason.SEAL_TORN, (page,)))
    rig.feed("d0", events.Hello(replace(rig.peer("p0"), node="p2"), Role.PREFILL, 64, 16))
    rig.feed("d0", events.Cut(rig.peer("p0")))
    assert rig.decode.ledger.state[page] == PageState.POISONED
    out = rig.feed("d0", events.Cut(rig.peer("p1")))
    assert only(out, commands.PagesFreed).pages == (page,)
    assert rig.decode.ledger.state[page] == PageState.FREE, "a writer that came later does not hold it"


def test_abort_during_verification_waits_for_its_end():
    rig = verifying()
    rig.leave(1)
    rig.run()
    record = rig.lease()
    assert record.state is DecodeState.CLOSING
    rig.feed("d0", events.SealsVerified(record.lease))
    took(rig, DecodeState.CLOSING, DecodeFact.SEALS_GOOD)
    assert rig.is_home("d0")


def test_abort_during_verification_still_poisons():
    rig = verifying()
    rig.leave(1)
    rig.run()
    record = rig.lease()
    event = events.SealsRejected(record.lease, IntegrityReason.SEAL_TORN, (record.pages[0].page,))
    rig.feed("d0", event)
    took(rig, DecodeState.CLOSING, DecodeFact.SEALS_BAD)
    assert rig.decode.ledger.count(PageState.POISONED) == 1


def test_a_writer_that_has_closed_may_die():
    for stage in (verifying, running):
        rig = stage()
        state = rig.lease().state
        rig.feed("d0", events.PeerLost(rig.peer("p0")))
        took(rig, state, DecodeFact.WRITER_LOST)
        rig.feed("d0", events.Cut(rig.peer("p0")))
        took(rig, state, DecodeFact.WRITER_CUT)
        assert rig.lease().state is state
    rig = waiting()
    rig.feed("d0", events.PeerLost(rig.peer("p0")))
    took(rig, DecodeState.WAITING, DecodeFact.WRITER_LOST)
    rig.feed("d0", events.Cut(rig.peer("p0")))
    took(rig, DecodeState.WAITING, DecodeFact.WRITER_CUT)


def test_closed_repeated_changes_nothing():
    for stage, index in ((verifying, -1), (running, -1), (waiting, 0), (waiting, 1)):
        rig = stage()
        record = rig.lease(index=index)
        state = record.state
        rig.feed("d0", events.Closed(record.writer, record.lease, Failed(Failure.ABORTED)))
        took(rig, state, DecodeFact.CLOSED_AGAIN)
        assert record.state is state


# ---------------------------------------------------------------- RUNNING
def test_tail_copied_frees_the_original():
    rig = uncopied()
    record = rig.lease()
    original = record.pages[-1]
    out = rig.feed("d0", events.TailCopied(record.lease))
    took(rig, DecodeState.RUNNING, DecodeFact.TAIL_COPIED)
    assert only(out, commands.PagesFreed).pages == (original.page,)
    assert len(record.pages) == 2


def test_original_waits_for_the_steps_that_may_read_it():
    rig = uncopied()
    record = rig.lease()
    original = record.pages[-1].page
    rig.feed("d0", events.StepLaunched(70, (record.lease,)))
    rig.feed("d0", events.TailCopied(record.lease))
    rig.feed("d0", events.StepLaunched(71, (record.lease,)))
    assert rig.decode.ledger.state[original] == PageState.CLOSING
    out = rig.feed("d0", events.StepRetired(70))
    assert only(out, commands.PagesFreed).pages == (original,)


def test_tail_copied_twice_fails_closed():
    rig = running()
    record = rig.lease()
    rig.feed("d0", events.TailCopied(record.lease))
    assert rig.finished == {}
    rig.run()
    assert rig.finished[1].reason is EndReason.ILLEGAL


def test_growth_page_by_page():
    rig = running()
    record = rig.lease()
    out = rig.feed("d0", events.PageWanted(record.lease))
    took(rig, DecodeState.RUNNING, DecodeFact.PAGE_FREE)
    grant = only(out, commands.GrantPage)
    assert only(out, commands.StampPages).pages == (grant.page,)
    assert rig.decode.ledger.state[grant.page.page] == PageState.OPEN
    rig.feed("d0", events.PageSealed(record.lease, grant.page))
    took(rig, DecodeState.RUNNING, DecodeFact.PAGE_SEALED)
    assert rig.decode.ledger.state[grant.page.page] == PageState.SEALED


def test_a_page_that_is_not_open_cannot_be_sealed():
    rig = running()
    record = rig.lease()
    rig.feed("d0", events.PageSealed(record.lease, record.pages[0]))
    took(rig, DecodeState.RUNNING, DecodeFact.PAGE_STRAY)
    assert rig.decode.counts["illegal"] == 1


def test_abort_of_a_row_waits_for_launched_steps():
    rig = running()
    record = rig.lease()
    rig.feed("d0", events.StepLaunched(70, (record.lease,)))
    took(rig, DecodeState.RUNNING, DecodeFact.LAUNCHED)
    out = rig.feed("d0", events.Abort(record.router, record.attempt))
    took(rig, DecodeState.RUNNING, DecodeFact.ABORT)
    assert only(out, commands.StopRow).lease == record.lease
    assert not rig.is_home("d0")
    rig.feed("d0", events.StepLaunched(71, (record.lease,)))
    took(rig, DecodeState.CLOSING, DecodeFact.LAUNCHED)
    rig.feed("d0", events.StepRetired(70))
    assert not rig.is_home("d0"), "a step that slipped in is waited for too"
    rig.feed("d0", events.StepRetired(71))
    took(rig, DecodeState.CLOSING, DecodeFact.RETIRED)
    assert rig.is_home("d0")


def test_finished_row_frees_after_its_last_step():
    rig = running()
    record = rig.lease()
    rig.feed("d0", events.StepLaunched(70, (record.lease,)))
    out = rig.feed("d0", events.RowFinished(record.lease, End(EndReason.STOP)))
    took(rig, DecodeState.RUNNING, DecodeFact.FINISHED)
    assert only(out, commands.SendEnded).end == End(EndReason.STOP)
    out = rig.feed("d0", events.StepRetired(70))
    assert len(only(out, commands.PagesFreed).pages) == 3


def test_guard_takes_a_row_out():
    rig = running()
    record = rig.lease()
    event = events.GuardRejected(record.lease, IntegrityReason.GUARD_SEAL, (record.pages[0].page,))
    out = rig.feed("d0", event)
    took(rig, DecodeState.RUNNING, DecodeFact.GUARD_BAD)
    assert only(out, commands.StopRow)
    assert only(out, commands.SendEnded).end.integrity is IntegrityReason.GUARD_SEAL
    assert rig.decode.ledger.count(PageState.POISONED) == 1


def test_guard_after_the_end_still_poisons():
    rig = running()
    record = rig.lease()
    rig.feed("d0", events.StepLaunched(70, (record.lease,)))
    rig.feed("d0", events.Abort(record.router, record.attempt))
    event = events.GuardRejected(record.lease, IntegrityReason.GUARD_SEAL, (record.pages[0].page,))
    rig.feed("d0", event)
    took(rig, DecodeState.CLOSING, DecodeFact.GUARD_BAD)
    rig.feed("d0", events.StepRetired(70))
    assert rig.decode.ledger.count(PageState.POISONED) == 1
    assert not rig.decode.leases


# ---------------------------------------------------------------- WAITING
def test_the_youngest_row_makes_way_and_the_oldest_gets_its_page():
    rig = two_rows()
    older, younger = rig.decode.leases
    out = rig.feed("d0", events.PageWanted(older))
    took(rig, DecodeState.RUNNING, DecodeFact.PAGE_SHORT)
    took(rig, DecodeState.RUNNING, DecodeFact.PREEMPTED)
    took(rig, DecodeState.WAITING, DecodeFact.PAGE_CAME)
    assert only(out, commands.StopRow).lease == younger
    assert only(out, commands.SendEnded).end.reason is EndReason.PREEMPTED
    assert only(out, commands.GrantPage).lease == older


def test_a_young_row_that_wants_a_page_makes_way_itself():
    rig = two_rows()
    _, younger = rig.decode.leases
    out = rig.feed("d0", events.PageWanted(younger))
    took(rig, DecodeState.WAITING, DecodeFact.PREEMPTED)
    assert only(out, commands.SendEnded).end.reason is EndReason.PREEMPTED


def test_preemption_is_one_answer_for_the_client():
    rig = Joined(decode_pages=4, spare=1)
    rig.submit(8, 8)
    rig.submit(4, 8)
    rig.run().assert_home()
    assert rig.decode.counts["preempted"] >= 1
    assert rig.answers == {1: list(range(8, 16)), 2: list(range(4, 12))}


def test_a_younger_lease_that_is_not_running_makes_way_too():
    for hold, state in ((("r", "p0"), DecodeState.RESERVED), ("VerifySeals", DecodeState.VERIFYING)):
        rig = Joined(decode_pages=4, spare=1)
        rig.hold("step")
        rig.submit(8, 8)
        rig.run()
        rig.hold(hold)
        rig.submit(4, 4)
        rig.run()
        assert rig.lease().state is state
        older, _ = rig.decode.leases
        rig.feed("d0", events.PageWanted(older))
        took(rig, state, DecodeFact.PREEMPTED)
        assert rig.decode.leases[older].state is DecodeState.WAITING
        rig.seats["d0"].rows[older].wants_page = True
        rig.release(hold, "step")
        rig.run().assert_home()


def test_waiting_row_gets_the_page_when_the_step_retires():
    rig = waiting()
    rig.feed("d0", events.PageWanted(rig.lease(index=0).lease))
    took(rig, DecodeState.WAITING, DecodeFact.PAGE_AGAIN)
    assert rig.lease().state is DecodeState.CLOSING
    out = rig.feed("d0", events.StepRetired(70))
    assert only(out, commands.GrantPage).lease == rig.lease(index=0).lease


def test_no_new_reservation_overtakes_a_waiting_row():
    rig = waiting()
    assert refusal_of(reserve(rig, tokens=1, max_tokens=1)) == BUSY


def test_a_row_that_waits_can_end_in_every_way():
    ends = {
        DecodeFact.ABORT: lambda r: events.Abort(r.router, r.attempt),
        DecodeFact.FINISHED: lambda r: events.RowFinished(r.lease, End(EndReason.STOP)),
        DecodeFact.GUARD_BAD: lambda r: events.GuardRejected(r.lease, IntegrityReason.GUARD_OWNER),
    }
    for fact, event in ends.items():
        rig = waiting()
        record = rig.lease(index=0)
        rig.feed("d0", event(record))
        took(rig, DecodeState.WAITING, fact)
        assert record.lease not in rig.decode.waiting


def test_a_waiting_row_hears_of_its_steps_seals_and_copies():
    rig = waiting()
    record = rig.lease(index=0)
    rig.feed("d0", events.StepLaunched(80, (record.lease,)))
    took(rig, DecodeState.WAITING, DecodeFact.LAUNCHED)
    rig.feed("d0", events.StepRetired(80))
    took(rig, DecodeState.WAITING, DecodeFact.RETIRED)
    rig.feed("d0", events.PageSealed(record.lease, record.tail))
    took(rig, DecodeState.WAITING, DecodeFact.PAGE_SEALED)


def test_a_tail_copied_while_waiting_is_the_page_that_was_missing():
    rig = Joined(decode_pages=4, spare=1)
    rig.hold("step", ("d0", "d0"))
    rig.submit(7, 8)
    rig.submit(4, 4)
    rig.run()
    older, younger = rig.decode.leases
    rig.feed("d0", events.StepLaunched(70, (younger,)))
    rig.feed("d0", events.PageWanted(older))
    out = rig.feed("d0", events.TailCopied(older))
    took(rig, DecodeState.WAITING, DecodeFact.TAIL_COPIED)
    assert only(out, commands.GrantPage).lease == older


def test_growth_deadline_under_quarantine_is_a_refusal():
    rig = Joined(decode_pages=4, spare=1)
    rig.hold("step")
    rig.submit(8, 8)
    rig.run()
    rig.hold(("r", "p0"), ("d0", "p0"))
    rig.submit(4, 4)
    rig.run()
    older, _ = rig.decode.leases
    rig.leave(2)
    rig.run()
    rig.feed("d0", events.PageWanted(older))
    rig.expire("d0", TimerKind.GROWTH)
    took(rig, DecodeState.WAITING, DecodeFact.GROWTH_DEADLINE)
    rig.run()
    assert rig.finished[1].refusal == Refusal(RefusalCode.QUARANTINE)


def test_growth_deadline_without_quarantine_preempts():
    rig = waiting()
    older = rig.lease(index=0)
    rig.expire("d0", TimerKind.GROWTH)
    ended = commands.SendEnded(
        older.router, older.attempt, End(EndReason.PREEMPTED, detail="older requests hold the pages")
    )
    assert ("d0", ">>", ended) in rig.log


# ---------------------------------------------------------------- CLOSING
def test_close_is_asked_until_answered():
    rig = decode_closing()
    for _ in range(2):
        rig.expire("d0", TimerKind.CLOSE_RETRY)
        took(rig, DecodeState.CLOSING, DecodeFact.CLOSE_DEADLINE)
    assert rig.lease().closes_asked == 3
    rig.release(("d0", "p0"), ("p0", "d0"))
    rig.run()
    assert rig.is_home("d0")
    assert ("d0", DecodeFact.CLOSED_LATE) in [(name, t.fact) for name, t in rig.trail]


def test_a_silent_writer_is_cut():
    rig = decode_closing()
    for _ in range(rig.decode.config.close_retries_max):
        rig.expire("d0", TimerKind.CLOSE_RETRY)
    assert rig.decode.writers[rig.peer("p0")] is Reach.CUTTING
    assert rig.decode.ledger.count(PageState.CLOSING) == 4
    rig.run()
    assert rig.is_home("d0"), "the cut was proven"


def test_said_again_in_closing_changes_nothing():
    rig = decode_closing()
    record = rig.lease()
    rig.feed("d0", events.Abort(record.router, record.attempt))
    took(rig, DecodeState.CLOSING, DecodeFact.ABORT)
    rig.feed("d0", events.PageWanted(record.lease))
    assert rig.decode.counts["ignored_in_closing"] == 1


def test_stale_timers_are_ignored():
    rig = reserved()
    timer = Timer(TimerKind.LEASE, rig.lease().lease)
    assert rig.feed("d0", events.Expired(timer, 7)) == []
    assert rig.feed("d0", events.Expired(Timer(TimerKind.LEASE, UNKNOWN), 1)) == []
    assert rig.decode.counts["stale_timer"] == 2
    rig = running()
    timer = Timer(TimerKind.LEASE, rig.lease().lease)
    assert rig.feed("d0", events.Expired(timer, 1)) == [], "the writer closed in time"


def test_writers_hear_of_the_lowest_live_lease():
    rig = Joined(prefills=2)
    rig.hold("step")
    rig.submit(4, 4)
    rig.submit(4, 4)
    rig.run()
    first, second = rig.decode.leases
    out = rig.feed("d0", events.RowFinished(second, End(EndReason.STOP)))
    assert [c for c in out if isinstance(c, commands.SendLowestLive)] == []
    out = rig.feed("d0", events.RowFinished(first, End(EndReason.STOP)))
    told = [(c.writer.node, c.sequence) for c in out if isinstance(c, commands.SendLowestLive)]
    assert told == [("p0", 3), ("p1", 3)]


def test_what_is_not_for_decode_is_counted():
    rig = Joined()
    assert rig.feed("d0", events.ClientGone(1)) == []
    assert rig.feed("d0", events.Hello(replace(rig.peer("d0"), node="d9"), Role.DECODE)) == []
    assert rig.decode.counts["misdirected"] == 2
    stranger = replace(rig.peer("r"), node="r9")
    assert rig.feed("d0", events.Abort(stranger, AttemptId(1, 1, 1))) == []
    assert rig.decode.counts["unknown_sender"] == 1


def test_writers_are_bounded():
    rig = Joined()
    rig.decode.config = replace(rig.decode.config, writers_max=1)
    rig.feed("d0", events.Hello(replace(rig.peer("p0"), node="p5"), Role.PREFILL, 64, 16))
    assert rig.decode.counts["writers_full"] == 1
    assert len(rig.decode.writers) == 1


# ---------------------------------------------------------------- decisions seen wrong
def test_without_seal_verification_a_bad_page_would_start():
    class Unverified(Decisions):
        def verifies_seals(self):
            return False

    rig = verifying(decisions=Unverified())
    out = rig.feed("d0", events.SealsRejected(rig.lease().lease, IntegrityReason.SEAL_TORN))
    assert only(out, commands.StartRow)


def test_what_metrics_read():
    rig = waiting()
    assert rig.decode.lease_counts["waiting"] == 1
    assert rig.decode.lease_counts["closing"] == 1
    assert rig.decode.lease_counts["running"] == 0
    assert rig.decode.closing_leases == [rig.lease().lease]
