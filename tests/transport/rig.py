"""What the conformance suite stands on: two small pools, a receiver, writers, and patience with a bound."""

import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.kv.pool import Pool
from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.transport import BatchLost, BatchWritten, Completion, CutResult, WriteBatch

LAYOUT = PageLayout((LayerShape(1, 16, 16),) * 2, 16, "float32")
OTHER_LAYOUT = PageLayout((LayerShape(1, 16, 16),) * 2, 16, "float16")
TARGET_PAGES = 32
SOURCE_PAGES = 16
DECODE = Peer("decode-0", 50)
WRITER = Peer("prefill-0", 70)
LEASE = LeaseId(DECODE.incarnation, 1)
SECRET = b"the deployment's secret, shared by all nodes"
PATIENCE_SECONDS = 20.0
OLD = 0xEE  # what every target page holds before a test writes to it

Factory = Callable[..., Any]


def eventually(predicate: Callable[[], object], what: str) -> None:
    """Wait until it holds; fail the test, naming it, when it does not within PATIENCE_SECONDS."""
    deadline_s = time.monotonic() + PATIENCE_SECONDS
    while not predicate():
        assert time.monotonic() < deadline_s, f"never came true: {what}"
        time.sleep(0.001)


def batch_of(
    targets: Iterable[int], *, batch: int = 0, sources: Iterable[int] | None = None, trailer: int = 0x54
) -> WriteBatch:
    """A batch that writes source page 0, 1, … (unless stated) over the targets."""
    pages = tuple(targets)
    return WriteBatch(
        lease=LEASE,
        batch=batch,
        sources=tuple(range(len(pages))) if sources is None else tuple(sources),
        targets=tuple(PageRef(page, 1) for page in pages),
        trailers=bytes([trailer]) * 64 * len(pages),
    )


class Pause:
    """A PagePause that stops the writer's thread in mid-page until `go`."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()
        self.seen: list[int] = []

    def __call__(self, batch: WriteBatch, index: int) -> None:
        self.seen.append(index)
        self.reached.set()
        assert self.released.wait(PATIENCE_SECONDS), "the test never let the writer go on"

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE_SECONDS), "the writer never reached the middle of a page"

    def go(self) -> None:
        self.released.set()


@dataclass
class Rig:
    """A receiver over a fresh pool, and the writers that a test connects."""

    factory: Factory
    run_dir: Path
    me: Peer = DECODE
    target_pages: int = TARGET_PAGES
    layout: PageLayout = LAYOUT
    wakes: int = 0
    receiver_wakes: int = 0
    writers: list[Any] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pool = Pool.create(self.layout, self.target_pages)
        self.pool.buffer[:] = OLD
        self.source = Pool.create(self.layout, self.target_pages)
        for page in range(self.target_pages):
            self.source.page(page)[:] = page % 200 + 1
        self.receiver = self.factory().listen(
            pool=self.pool, me=self.me, secret=SECRET, run_dir=self.run_dir, wake=self._receiver_woke
        )

    def _receiver_woke(self) -> None:
        self.receiver_wakes += 1

    def _writer_woke(self) -> None:
        self.wakes += 1

    def connect(self, me: Peer = WRITER, **changed: Any) -> Any:
        """Connect a writer; keyword arguments replace those of Transport.connect (and `pause`)."""
        pause = changed.pop("pause", None)
        if pause is not None:
            self.pauses.append(pause)
        facts = {
            "address": self.receiver.address,
            "me": me,
            "target": self.me,
            "secret": SECRET,
            "source_pool": self.source,
            "wake": self._writer_woke,
        }
        writer = self.factory(pause=pause).connect(**(facts | changed))
        self.writers.append(writer)
        return writer

    def close(self) -> None:
        for pause in self.pauses:
            pause.go()
        for writer in self.writers:
            eventually(writer.destroy, "the writer can be destroyed")
        self.receiver.close()
        self.pool.close()
        self.source.close()

    # ------------------------------------------------------------ questions
    def cut_until_proven(self, peer: Peer = WRITER) -> None:
        eventually(lambda: self.receiver.cut(peer) is CutResult.PROVEN, f"the cut of {peer} is proven")

    def page_is(self, page: int, fill: int, trailer: int = 0x54) -> bool:
        return bool((self.pool.payload(page) == fill).all() and (self.pool.trailer(page) == trailer).all())

    def untouched(self, page: int) -> bool:
        return bool((self.pool.page(page) == OLD).all())

    def changed_pages(self) -> set[int]:
        rows = self.pool.buffer.reshape(self.target_pages + 1, -1)
        return set(np.flatnonzero((rows != OLD).any(axis=1)).tolist())

    def snapshot(self) -> bytes:
        return bytes(self.pool.buffer)


def completions(writer: Any, count: int) -> list[Completion]:
    """The next `count` completions; fails when they do not come, or more than those do."""
    found: list[Completion] = []

    def enough() -> bool:
        found.extend(writer.poll())
        return len(found) >= count

    eventually(enough, f"{count} completions")
    assert len(found) == count, found
    return found


def written(writer: Any) -> BatchWritten:
    (completion,) = completions(writer, 1)
    assert isinstance(completion, BatchWritten), completion
    return completion


def lost(writer: Any) -> BatchLost:
    (completion,) = completions(writer, 1)
    assert isinstance(completion, BatchLost), completion
    return completion


def fresh_secret() -> bytes:
    return secrets.token_bytes(32)
