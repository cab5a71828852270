"""Conformance, first part: posting, order, bounds, stopping, and tearing the connection down."""

import pytest
from tests.transport.conform_base import Conformance
from tests.transport.rig import (
    LAYOUT,
    LEASE,
    OLD,
    TARGET_PAGES,
    Pause,
    Rig,
    batch_of,
    completions,
    eventually,
    lost,
    written,
)

from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import PageRef
from kvfence.transport import BATCHES_QUEUED_MAX, BatchLost, BatchWritten, Loss, WriteBatch


class WritingConformance(Conformance):
    """What `post`, `stop_posting`, `poll` and `destroy` do."""

    def test_pages_arrive_whole_with_their_staged_trailers_and_nothing_else_changes(self, rig: Rig):
        writer = rig.connect()
        writer.post(batch_of([9, 4], sources=[2, 3]))
        done = written(writer)
        assert (done.lease, done.batch, done.written_bytes) == (LEASE, 0, 2 * LAYOUT.page_bytes)
        assert done.posting_seconds >= 0
        assert rig.page_is(9, 3)
        assert rig.page_is(4, 4)
        assert rig.changed_pages() == {4, 9}
        assert rig.wakes >= 1

    def test_each_page_takes_its_own_trailer(self, rig: Rig):
        writer = rig.connect()
        writer.post(WriteBatch(LEASE, 0, (0, 0), (PageRef(1, 1), PageRef(2, 1)), b"a" * 64 + b"b" * 64))
        written(writer)
        assert bytes(rig.pool.trailer(1)) == b"a" * 64
        assert bytes(rig.pool.trailer(2)) == b"b" * 64

    def test_batches_complete_once_each_in_the_order_of_their_posts(self, rig: Rig):
        writer = rig.connect()
        for number in range(20):
            writer.post(batch_of([number], batch=number))
        assert [done.batch for done in completions(writer, 20)] == list(range(20))
        assert writer.poll() == []

    def test_the_trailer_is_written_after_the_payload(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5], sources=[1]))
        pause.wait()
        eventually(lambda: rig.pool.payload(5)[0] == 2, "the first half has arrived")
        assert (rig.pool.trailer(5) == OLD).all()
        pause.go()
        written(writer)
        assert rig.page_is(5, 2)

    @pytest.mark.parametrize("page", [TARGET_PAGES, TARGET_PAGES + 1, -1, 2**40])
    def test_a_target_that_is_not_registered_loses_the_batch_before_anything_is_written(
        self, rig: Rig, page: int
    ):
        # TARGET_PAGES itself is the padding page, which every step reads and no writer may touch.
        writer = rig.connect()
        writer.post(batch_of([1, page]))
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.OUT_OF_RANGE, True)
        assert str(page) in gone.detail
        assert rig.changed_pages() == set()
        writer.post(batch_of([1]))
        written(writer)

    @pytest.mark.parametrize("page", [TARGET_PAGES, -1])
    def test_a_source_that_is_not_registered_loses_the_batch_before_anything_is_written(
        self, rig: Rig, page: int
    ):
        writer = rig.connect()
        writer.post(batch_of([1, 2], sources=[0, page]))
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.OUT_OF_RANGE, True)
        assert rig.changed_pages() == set()

    def test_the_first_and_the_last_page_are_registered(self, rig: Rig):
        writer = rig.connect()
        writer.post(batch_of([0, TARGET_PAGES - 1], sources=[0, TARGET_PAGES - 1]))
        written(writer)
        assert rig.changed_pages() == {0, TARGET_PAGES - 1}

    def test_a_batch_that_outlives_its_deadline_posts_no_further_page(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5, 6, 7]))
        pause.wait()
        writer.stop_posting(LEASE, 0)
        assert writer.poll() == []  # nothing is claimed while a page is half written
        pause.go()
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.STOPPED, True)
        assert rig.page_is(5, 1)  # the page that had been begun was finished
        assert rig.changed_pages() == {5}
        assert writer.alive

    def test_a_batch_stopped_before_it_began_writes_nothing(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5]))
        pause.wait()
        writer.post(batch_of([6], batch=1))
        writer.stop_posting(LEASE, 1)
        pause.go()
        first, second = completions(writer, 2)
        assert isinstance(first, BatchWritten)
        assert isinstance(second, BatchLost)
        assert (second.batch, second.why, second.quiet) == (1, Loss.STOPPED, True)
        assert rig.changed_pages() == {5}

    def test_a_stop_after_the_last_page_has_begun_changes_nothing(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5]))
        pause.wait()
        writer.stop_posting(LEASE, 0)
        pause.go()
        written(writer)

    def test_a_stop_for_a_batch_that_is_not_posted_is_ignored(self, rig: Rig):
        writer = rig.connect()
        writer.stop_posting(LEASE, 3)
        writer.post(batch_of([5], batch=3))
        written(writer)
        writer.stop_posting(LEASE, 3)
        assert writer.poll() == []

    def test_the_queue_is_bounded_and_says_so(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5]))
        pause.wait()
        for number in range(1, BATCHES_QUEUED_MAX + 2):
            writer.post(batch_of([6], batch=number))
        gone = lost(writer)
        assert (gone.batch, gone.why, gone.quiet) == (BATCHES_QUEUED_MAX + 1, Loss.QUEUE_FULL, True)

    def test_a_name_that_is_in_flight_cannot_be_posted_again(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5]))
        pause.wait()
        with pytest.raises(InvariantError, match="in flight"):
            writer.post(batch_of([6]))
        pause.go()
        written(writer)
        assert rig.changed_pages() == {5}

    def test_destroy_is_false_in_mid_page_and_true_once_nothing_is_read_any_more(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5, 6]))
        writer.post(batch_of([7], batch=1))
        pause.wait()
        assert writer.destroy() is False
        assert not writer.alive
        pause.go()
        eventually(writer.destroy, "the writer is destroyed")
        assert {done.batch: done.why for done in completions(writer, 2) if isinstance(done, BatchLost)} == {
            0: Loss.DESTROYED,
            1: Loss.DESTROYED,
        }
        assert rig.changed_pages() <= {5}
        assert writer.destroy() is True

    def test_what_is_posted_after_destroy_is_lost_and_quiet(self, rig: Rig):
        writer = rig.connect()
        assert writer.alive
        eventually(writer.destroy, "the writer is destroyed")
        writer.post(batch_of([5]))
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.DESTROYED, True)
        assert rig.changed_pages() == set()

    def test_writers_of_two_nodes_write_side_by_side(self, rig: Rig):
        first = rig.connect()
        second = rig.connect(type(first.peer)("prefill-1", 3))
        first.post(batch_of([5], sources=[1]))
        second.post(batch_of([6], sources=[2]))
        written(first)
        written(second)
        assert rig.page_is(5, 2)
        assert rig.page_is(6, 3)
