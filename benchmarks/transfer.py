"""Pages over each transport against a plain copy: 64 MiB in pages of SmolLM2's size in bf16.

Rules: the ways run in turn, so that they share whatever else the machine does; figures are the least of
the repeats, with the spread (largest ÷ least) beside them. Both ends live in this process, each with its
own thread, as on a busy machine; the pages are touched before anything is timed. Nothing here fails on a
slow machine.

Run it: python benchmarks/transfer.py [--quick]
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.kv.pool import Pool
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.transport import TRAILER_BYTES, TRANSPORTS, BatchWritten, WriteBatch, make_transport

SMOLLM2 = PageLayout((LayerShape(3, 64, 64),) * 30, 16, "bfloat16")  # 368,640 bytes of payload
TOTAL_BYTES = 64 * 1024 * 1024
BATCH_BYTES = 8 * 1024 * 1024
DECODE = Peer("decode-0", 1)
PREFILL = Peer("prefill-0", 1)
SECRET = bytes(range(32))
COMPLETION_SECONDS = 60.0


class Link:
    """A receiver and a writer of one transport, and a batch of all pages cut into the usual size."""

    def __init__(self, name: str, run_dir: Path, source: Pool, target: Pool) -> None:
        transport = make_transport(name)
        self.bell = threading.Event()
        self.receiver = transport.listen(
            pool=target, me=DECODE, secret=SECRET, run_dir=run_dir, wake=lambda: None
        )
        self.writer = transport.connect(
            address=self.receiver.address,
            me=PREFILL,
            target=DECODE,
            secret=SECRET,
            source_pool=source,
            wake=self.bell.set,
        )
        step = BATCH_BYTES // SMOLLM2.page_bytes
        self.batches = [
            _batch(number, range(first, min(first + step, source.pages)))
            for number, first in enumerate(range(0, source.pages, step))
        ]

    def move(self) -> None:
        """Post everything and wait for the last completion."""
        for batch in self.batches:
            self.writer.post(batch)
        left = len(self.batches)
        while left:
            invariant(self.bell.wait(COMPLETION_SECONDS), "the transport completes what it was given")
            self.bell.clear()
            for done in self.writer.poll():
                invariant(isinstance(done, BatchWritten), f"a benchmark's batch was lost: {done}")
                left -= 1

    def close(self) -> None:
        """Give threads and files back."""
        while not self.writer.destroy():
            pass
        self.receiver.close()


def _batch(number: int, pages: range) -> WriteBatch:
    return WriteBatch(
        lease=LeaseId(1, 1),
        batch=number,
        sources=tuple(pages),
        targets=tuple(PageRef(page, 1) for page in pages),
        trailers=bytes(TRAILER_BYTES * len(pages)),
    )


def _copy_pages(source: Pool, target: Pool) -> None:
    for page in range(source.pages):
        np.copyto(target.page(page), source.page(page))


def run(*, quick: bool) -> dict[str, Any]:
    """Measure every way; GB/s by the least wall time, seconds, and the spread of the repeats."""
    repeats = 5 if quick else 30
    pages = TOTAL_BYTES // SMOLLM2.payload_bytes
    moved_bytes = pages * SMOLLM2.page_bytes
    with ExitStack() as stack:
        run_dir = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, target = Pool.create(SMOLLM2, pages), Pool.create(SMOLLM2, pages)
        source.buffer[:] = 1
        target.buffer[:] = 0
        ways: dict[str, Callable[[], None]] = {"memcpy": lambda: _copy_pages(source, target)}
        for name in TRANSPORTS:
            link = Link(name, run_dir, source, target)
            stack.callback(link.close)
            ways[name] = link.move
        seconds = _interleaved(ways, repeats)
    return {
        "pages": pages,
        "page_bytes": SMOLLM2.page_bytes,
        "repeats": repeats,
        "ways": {
            name: {
                "gb_per_second": round(moved_bytes / min(took) / 1e9, 2),
                "least_seconds": round(min(took), 6),
                "spread": round(max(took) / min(took), 2),
            }
            for name, took in seconds.items()
        },
    }


def _interleaved(ways: dict[str, Callable[[], None]], repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for move in ways.values():
        move()  # once untimed: first touches, connection buffers
    for _ in range(repeats):
        for name, move in ways.items():
            started = time.perf_counter()
            move()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few repeats")
    print(json.dumps(run(quick=parser.parse_args().quick), indent=2))


if __name__ == "__main__":
    main()
