"""What prefill hears and need not act on: it says what it must, nobody moves, and the answer becomes whole."""

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import computing, prefill_closing, sending
from tests.protocol.test_prefill import handed, quiet_rig
from tests.protocol.unmoved import goes_on, standing, strange, unmoved

from kvfence.protocol import commands, events
from kvfence.protocol.words import Failed, Failure, LeaseId, TimerKind

LIVE = (computing, sending)


def record_of(rig):
    return rig.lease("p0", 0)


@pytest.mark.parametrize("stage", LIVE)
def test_a_repeated_prefill_is_not_computed_twice(stage):
    rig = stage()
    record = record_of(rig)
    unmoved(rig, "p0", handed(rig, lease=record.lease, attempt=record.attempt))
    goes_on(rig)


@pytest.mark.parametrize("stage", LIVE)
def test_a_renewed_connection_is_no_end(stage):
    rig = stage()
    unmoved(rig, "p0", events.Reconnected(record_of(rig).decode))
    goes_on(rig)


@pytest.mark.parametrize("stage", LIVE)
def test_steps_come_and_go(stage):
    rig = stage()
    unmoved(rig, "p0", events.StepLaunched(70, (record_of(rig).lease,)))
    unmoved(rig, "p0", events.StepRetired(70))
    goes_on(rig)


@pytest.mark.parametrize("stage", LIVE)
def test_a_batch_past_its_posting_bound_holds_the_next_ones_back_and_ends_nothing(stage):
    rig = stage(batch_pages=1)
    before = standing(rig)
    rig.expire("p0", TimerKind.BATCH)
    assert rig.prefill.counts["batch_deadline"] == 1
    assert standing(rig) == before
    goes_on(rig)


def test_a_written_batch_makes_room_for_the_next_while_the_prompt_is_computed():
    rig = computing(chunk_tokens=12, batch_pages=1)
    assert [write.command.first_ordinal for write in rig.writes] == [0, 1], "three pages are sealed"
    before = standing(rig)
    rig.do(("write", 0))
    assert [write.command.first_ordinal for write in rig.writes] == [1, 2]
    assert standing(rig) == before
    goes_on(rig)


def test_a_written_batch_is_not_the_last_one():
    rig = sending()
    before = standing(rig)
    rig.do(("write", 0))
    assert standing(rig) == before
    goes_on(rig)


# ---------------------------------------------------------------- nobody knows the lease
def test_each_word_about_an_unknown_lease_is_counted():
    lease = LeaseId(3, 9)
    for event in (
        events.ChunkComputed(lease, 4),
        events.ExecutorFailed(lease, "x"),
        events.WriteCompleted(lease, 1),
        events.WriteFailed(lease, 1),
    ):
        rig = quiet_rig()
        unmoved(rig, "p0", event)
        assert rig.prefill.counts["stray"] == 1


# ---------------------------------------------------------------- CLOSING
def test_what_was_on_its_way_to_a_closing_lease_is_not_strange():
    rig = prefill_closing()
    record = record_of(rig)
    unmoved(rig, "p0", events.Abort(record.router, record.attempt))
    unmoved(rig, "p0", events.Close(record.decode, record.lease))
    unmoved(rig, "p0", handed(rig, lease=record.lease, attempt=record.attempt))
    unmoved(rig, "p0", events.LowestLive(record.decode, record.lease.sequence + 1))
    unmoved(rig, "p0", events.Reconnected(record.decode))
    unmoved(rig, "p0", events.PeerLost(rig.peer("r")))
    unmoved(rig, "p0", events.PeerLost(record.decode), commands.DestroyConnection)


def test_a_posting_bound_that_passes_after_the_end_stops_the_batch():
    rig = prefill_closing()
    before = standing(rig)
    batch = rig.writes[-1].command.batch
    rig.expire("p0", TimerKind.BATCH)
    assert rig.log[-1] == ("p0", ">>", commands.StopPosting(record_of(rig).lease, batch))
    assert standing(rig) == before
    assert strange(rig, "p0") == {}


def test_batches_that_end_after_their_lease_are_waited_for_and_not_strange():
    rig = prefill_closing()
    first, second = rig.writes
    before = standing(rig)
    rig.land(first)
    assert standing(rig) == before, "another batch is in flight"
    rig.drop(second)
    assert strange(rig, "p0") == {}
    assert rig.is_home("p0")
    rig = prefill_closing()
    rig.drop(rig.writes[0])
    assert standing(rig) == before
    rig.do(("write", 0))
    assert strange(rig, "p0") == {}
    assert rig.is_home("p0")


def test_chunks_that_end_after_their_lease_are_not_strange():
    rig = computing()
    record = record_of(rig)
    rig.feed("p0", events.Abort(record.router, record.attempt))
    unmoved(rig, "p0", events.ChunkComputed(record.lease, 12))
    unmoved(rig, "p0", events.ChunkComputed(record.lease, 14, 14))
    rig.do(("write", 0))
    assert rig.is_home("p0")


def test_steps_of_a_closing_lease_are_waited_for_and_not_strange():
    rig = prefill_closing()
    lease = record_of(rig).lease
    unmoved(rig, "p0", events.StepLaunched(70, (lease,)))
    rig.do(("write", 0))
    rig.do(("write", 0))
    assert not rig.is_home("p0")
    assert [c.outcome for _, _, c in rig.log if isinstance(c, commands.SendClosed)] == [
        Failed(Failure.ABORTED)
    ]
    unmoved(rig, "p0", events.StepLaunched(71, (lease,)))
    unmoved(rig, "p0", events.StepRetired(70))
    rig.feed("p0", events.StepRetired(71))
    assert strange(rig, "p0") == {}
    assert rig.is_home("p0")


def test_a_connection_that_is_destroyed_and_renewed_under_a_closing_lease_is_not_strange():
    rig = prefill_closing()
    record = record_of(rig)
    rig.feed("p0", events.StepLaunched(70, (record.lease,)))  # so that the lease stays to be seen
    unmoved(rig, "p0", events.ConnectionDestroyed(record.decode))
    (closed,) = unmoved(rig, "p0", events.Reconnected(record.decode), commands.SendClosed)
    assert closed.outcome == Failed(Failure.ABORTED)
    rig.feed("p0", events.StepRetired(70))
    assert rig.is_home("p0")


def closed_under_a_step():
    """Aborted, its write completed, Closed said; a step that may still write into our pages holds it here."""
    rig = computing()
    record = record_of(rig)
    rig.feed("p0", events.StepLaunched(70, (record.lease,)))
    rig.feed("p0", events.Abort(record.router, record.attempt))
    rig.do(("write", 0))
    assert [c.outcome for _, _, c in rig.log if isinstance(c, commands.SendClosed)] == [
        Failed(Failure.ABORTED)
    ]
    return rig


def test_closed_is_said_once_and_again_only_to_who_asks():
    rig = closed_under_a_step()
    record = record_of(rig)
    unmoved(rig, "p0", events.Close(record.decode, record.lease), commands.SendClosed)
    unmoved(rig, "p0", events.Abort(record.router, record.attempt))
    unmoved(rig, "p0", handed(rig, lease=record.lease, attempt=record.attempt))
    unmoved(rig, "p0", events.ChunkComputed(record.lease, 12))
    unmoved(rig, "p0", events.ChunkComputed(record.lease, 14, 14))
    unmoved(rig, "p0", events.ConnectionDestroyed(record.decode))
    unmoved(rig, "p0", events.Reconnected(record.decode))
    unmoved(rig, "p0", events.PeerLost(rig.peer("r")))
    unmoved(rig, "p0", events.PeerLost(record.decode), commands.DestroyConnection)
    unmoved(rig, "p0", events.LowestLive(record.decode, record.lease.sequence + 1))
    assert "unanswered_close" not in rig.prefill.counts
    rig.feed("p0", events.StepRetired(70))
    assert rig.is_home("p0")


def unposted():
    """Aborted with two batches in flight and a sealed page that was not posted yet."""
    rig = computing(chunk_tokens=12, batch_pages=1)
    record = record_of(rig)
    rig.feed("p0", events.Abort(record.router, record.attempt))
    assert (record.sealed_pages, record.posted_pages, len(rig.writes)) == (3, 2, 2)
    return rig


def test_nothing_more_is_posted_after_the_end_whatever_makes_room():
    rig = unposted()
    record = record_of(rig)
    first, second = rig.writes
    unmoved(rig, "p0", events.WriteCompleted(record.lease, first.command.batch))
    unmoved(rig, "p0", events.PeerLost(rig.peer("r")))
    unmoved(rig, "p0", events.LowestLive(record.decode, record.lease.sequence + 1))
    unmoved(rig, "p0", events.PeerLost(record.decode), commands.DestroyConnection)
    rig.feed("p0", events.WriteCompleted(record.lease, second.command.batch))
    assert rig.is_home("p0")
    rig = unposted()
    first, _ = rig.writes
    unmoved(rig, "p0", events.WriteFailed(record_of(rig).lease, first.command.batch, quiet=True))
    assert record.posted_pages == 2


def test_nothing_more_is_posted_or_said_when_another_lease_loses_the_connection():
    for ready in (unposted, closed_under_a_step):
        rig = ready()
        rig.release("StartPrefill")
        rig.hold("write")
        rig.submit(8, 2)
        rig.run()
        other = rig.lease("p0")
        rig.feed("p0", events.Abort(other.router, other.attempt))
        if ready is unposted:
            record = record_of(rig)
            unmoved(rig, "p0", events.WriteCompleted(record.lease, min(record.in_flight)))
        failed = events.WriteFailed(other.lease, min(other.in_flight))
        unmoved(rig, "p0", failed, commands.DestroyConnection)


def test_another_lease_that_fails_on_the_connection_is_no_news_to_a_closing_one():
    rig = Joined()
    rig.hold("write", ("p0", "d0"), ("d0", "p0"))
    rig.submit(8, 2)
    rig.submit(8, 2)
    rig.run()
    first, second = rig.prefill.leases.values()
    for record in (first, second):
        rig.feed("p0", events.Abort(record.router, record.attempt))
    failed = events.WriteFailed(first.lease, min(first.in_flight))
    unmoved(rig, "p0", failed, commands.DestroyConnection)
    rig.feed("p0", events.ConnectionDestroyed(first.decode))
    assert rig.is_home("p0")
