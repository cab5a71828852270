"""A transport whose writers do what a test says: they remember batches and complete them when told."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kvfence.protocol.words import LeaseId, Peer
from kvfence.transport import BatchLost, BatchWritten, Completion, Denial, Loss, WriteBatch, WriterDenied


@dataclass
class FakeWriter:
    """One page connection. `slow_ends` counts how often `destroy` still says False."""

    peer: Peer
    wake: Callable[[], None]
    alive: bool = True
    slow_ends: int = 0
    posted: list[WriteBatch] = field(default_factory=list)
    stopped: list[tuple[LeaseId, int]] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)

    def post(self, batch: WriteBatch) -> None:
        self.posted.append(batch)

    def stop_posting(self, lease: LeaseId, batch: int) -> None:
        self.stopped.append((lease, batch))

    def poll(self) -> list[Completion]:
        completions, self.completions = self.completions, []
        return completions

    def destroy(self) -> bool:
        self.alive = False
        self.slow_ends -= 1
        return self.slow_ends < 0

    def write(self, batch: WriteBatch) -> None:
        """Every byte of it is there."""
        self.completions.append(BatchWritten(batch.lease, batch.batch, 100 * len(batch.sources), 0.5))
        self.wake()

    def lose(self, batch: WriteBatch, *, quiet: bool) -> None:
        self.completions.append(
            BatchLost(batch.lease, batch.batch, Loss.CONNECTION, quiet=quiet, detail="lost")
        )
        self.wake()


class FakeTransport:
    """Connects at once, or fails as the test says."""

    name = "fake"

    def __init__(self) -> None:
        self.writers: list[FakeWriter] = []
        self.fault: Exception | None = None

    def connect(self, *, address, me, target, secret, source_pool, wake) -> FakeWriter:
        if self.fault is not None:
            raise self.fault
        writer = FakeWriter(target, wake)
        self.writers.append(writer)
        return writer

    def deny(self, denial: Denial) -> None:
        self.fault = WriterDenied(denial, "no")
