"""The writer's thread over a fake link: what it does when the link itself is at fault."""

import os
import threading
from typing import Any

import pytest
from tests.transport.rig import batch_of, completions, eventually

from kvfence.protocol.words import Peer
from kvfence.transport import BatchLost, BatchWritten, Completion, Loss, WriteBatch
from kvfence.transport.writer import QueuedWriter, Verdict


class FakeLink:
    """Does what `act` does; a pipe stands for the socket."""

    source_pages = 8
    target_pages = 8

    def __init__(self, act: Any) -> None:
        self.act = act
        self.released = 0
        self.interrupted = 0
        self.here, self.there = os.pipe()

    def fileno(self) -> int:
        return self.here

    def write(self, batch: WriteBatch, verdict: Verdict) -> Completion:
        done: Completion = self.act(batch, verdict)
        return done

    def interrupt(self) -> None:
        self.interrupted += 1

    def release(self) -> None:
        self.released += 1

    def close(self) -> None:
        os.close(self.here)
        os.close(self.there)


def writes(batch: WriteBatch, verdict: Verdict) -> Completion:
    return BatchWritten(batch.lease, batch.batch, 1, 0.0)


def breaks(batch: WriteBatch, verdict: Verdict) -> Completion:
    return BatchLost(batch.lease, batch.batch, Loss.CONNECTION, quiet=False)


def test_after_a_lost_connection_nothing_more_is_begun():
    link = FakeLink(breaks)
    writer = QueuedWriter(Peer("d", 1), link, lambda: None)
    for number in range(3):
        writer.post(batch_of([1], batch=number))
    gone = completions(writer, 3)
    assert [done.quiet for done in gone if isinstance(done, BatchLost)] == [False, True, True]
    eventually(writer.destroy, "destroyed")
    assert link.released == 1
    link.close()


def test_an_idle_connections_end_releases_the_link():
    link = FakeLink(writes)
    writer = QueuedWriter(Peer("d", 1), link, lambda: None)
    os.write(link.there, b"!")
    eventually(lambda: link.released == 1, "released")
    assert not writer.alive
    eventually(writer.destroy, "destroyed")
    link.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_the_link_itself_still_completes_the_batch_and_releases():
    def fails(batch: WriteBatch, verdict: Verdict) -> Completion:
        raise ZeroDivisionError

    link = FakeLink(fails)
    writer = QueuedWriter(Peer("d", 1), link, lambda: None)
    writer.post(batch_of([1]))
    (gone,) = completions(writer, 1)
    assert isinstance(gone, BatchLost)
    assert (gone.why, gone.quiet) == (Loss.CONNECTION, False)
    eventually(writer.destroy, "destroyed")
    assert link.released == 1
    link.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_link_that_cannot_be_released_is_never_called_destroyed():
    class Stuck(FakeLink):
        def release(self) -> None:
            raise BufferError("a view is held")

    link = Stuck(writes)
    writer = QueuedWriter(Peer("d", 1), link, lambda: None)
    assert not writer.destroy()
    eventually(lambda: not writer._thread.is_alive(), "the thread ends")
    assert not writer.destroy()
    os.close(writer._outbox.bell)
    link.close()


def test_destroy_interrupts_a_link_that_waits():
    entered, freed = threading.Event(), threading.Event()

    def waits(batch: WriteBatch, verdict: Verdict) -> Completion:
        entered.set()
        freed.wait(20)
        return BatchLost(batch.lease, batch.batch, verdict(batch) or Loss.STOPPED, quiet=False)

    link = FakeLink(waits)
    link.interrupt = freed.set  # type: ignore[method-assign]
    writer = QueuedWriter(Peer("d", 1), link, lambda: None)
    writer.post(batch_of([1]))
    assert entered.wait(20)
    eventually(writer.destroy, "destroyed")
    (gone,) = writer.poll()
    assert isinstance(gone, BatchLost)
    assert gone.why is Loss.DESTROYED
    link.close()
