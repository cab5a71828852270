"""The outbox: one completion for each batch, in each way that a batch can go."""

import pytest
from tests.transport.rig import LEASE, batch_of

from kvfence.protocol.errors import InvariantError
from kvfence.transport import BATCHES_QUEUED_MAX, BatchLost, BatchWritten, Loss
from kvfence.transport.outbox import Outbox


class Bell:
    """Counts wakes."""

    def __init__(self) -> None:
        self.rung = 0

    def __call__(self) -> None:
        self.rung += 1


@pytest.fixture
def wake() -> Bell:
    return Bell()


@pytest.fixture
def outbox(wake: Bell):
    outbox = Outbox(wake)
    yield outbox
    outbox.close(Loss.DESTROYED)
    outbox.release()


def test_batches_are_taken_in_order_and_finished_once(outbox: Outbox, wake: Bell):
    outbox.post(batch_of([1], batch=0))
    outbox.post(batch_of([2], batch=1))
    for number in range(2):
        batch = outbox.take()
        assert batch is not None
        assert batch.batch == number
        outbox.finish(BatchWritten(LEASE, number, 1, 0.0))
    assert outbox.take() is None
    assert [done.batch for done in outbox.poll()] == [0, 1]
    assert outbox.poll() == []
    assert wake.rung == 2


def test_the_verdict_follows_stop_and_close(outbox: Outbox):
    outbox.post(batch_of([1]))
    batch = outbox.take()
    assert batch is not None
    assert outbox.verdict(batch) is None
    outbox.stop_posting(LEASE, 0)
    assert outbox.verdict(batch) is Loss.STOPPED
    outbox.close(Loss.DESTROYED)
    assert outbox.verdict(batch) is Loss.DESTROYED


def test_close_loses_what_was_not_begun_and_the_first_reason_stays(outbox: Outbox):
    outbox.post(batch_of([1], batch=0))
    outbox.post(batch_of([2], batch=1))
    outbox.take()
    outbox.close(Loss.CONNECTION)
    outbox.close(Loss.DESTROYED)
    assert outbox.closed is Loss.CONNECTION
    assert outbox.poll() == [BatchLost(LEASE, 1, Loss.CONNECTION, quiet=True, detail="not begun")]
    assert outbox.take() is None
    outbox.post(batch_of([3], batch=2))
    assert outbox.poll() == [BatchLost(LEASE, 2, Loss.CONNECTION, quiet=True, detail="not begun")]


def test_a_name_is_free_again_after_its_completion(outbox: Outbox):
    outbox.post(batch_of([1]))
    with pytest.raises(InvariantError, match="in flight"):
        outbox.post(batch_of([1]))
    outbox.take()
    outbox.finish(BatchWritten(LEASE, 0, 1, 0.0))
    outbox.post(batch_of([1]))


def test_the_queue_has_its_bound(outbox: Outbox):
    for number in range(BATCHES_QUEUED_MAX):
        outbox.post(batch_of([1], batch=number))
    assert outbox.poll() == []
    outbox.post(batch_of([1], batch=BATCHES_QUEUED_MAX))
    assert outbox.poll() == [
        BatchLost(LEASE, BATCHES_QUEUED_MAX, Loss.QUEUE_FULL, quiet=True, detail="not begun")
    ]


def test_what_a_failed_thread_left_behind_is_lost_and_not_quiet(wake: Bell):
    outbox = Outbox(wake)
    outbox.post(batch_of([1]))
    outbox.take()
    with pytest.raises(InvariantError, match="still takes"):
        outbox.release()
    outbox.close(Loss.CONNECTION)
    outbox.release()
    (gone,) = outbox.poll()
    assert isinstance(gone, BatchLost)
    assert not gone.quiet
