"""The fence's bookkeeping at the incident's size: 2,040,000 tokens in pages of 16, a lease of 1,048,576.

Rules: the real ledger, seals and guard, without tensors: pages have a payload of two cache lines, so that
trailers exist and the pool is 24 MB. Parts run in turn, the least of the repeats counts, the spread is
beside it. Shares are of one decode step of batch 16 of the small default model; attending over a million
tokens takes far longer than that. Not measured here: the digests of real pages (`fence_parts` has the
price of one), and the address-translation misses of a pool of many gigabytes (perhaps 0.2 µs for each
trailer that is read).

Run it: python -m benchmarks.incident_size [--quick]
"""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.measure import Part, measure, table

from kvfence.kv import (
    KvIdentity,
    LayerShape,
    PageLayout,
    PageSealer,
    PageSweep,
    Pool,
    PrefixIndex,
    StepGuard,
    lease_key,
    stamp_unwritten,
    verify_handover,
)
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.words import LeaseId, PageRef

PAGE_TOKENS = 16
POOL_PAGES = 2_040_000 // PAGE_TOKENS
LEASE_TOKENS = 1_048_576
LEASE_PAGES = LEASE_TOKENS // PAGE_TOKENS
OTHER_ROWS = 15
OTHER_PAGES = (POOL_PAGES - LEASE_PAGES) // OTHER_ROWS - 64
TINY = PageLayout((LayerShape(1, 1, 1),), PAGE_TOKENS, "float32")
INCARNATION = 7
SECRET = bytes(range(32))
DECODE_16_MS = 60.0


class Incident:
    """A full decode pool, in which one lease of a whole context comes and goes again and again."""

    def __init__(self) -> None:
        self.pool, self.source = Pool.create(TINY, POOL_PAGES), Pool.create(TINY, LEASE_PAGES)
        self.ledger = PageLedger(POOL_PAGES)
        self.guard = StepGuard(self.pool, self.ledger, INCARNATION)
        self.sealer = PageSealer(self.source)
        self.own = tuple(PageRef(page, 1) for page in range(LEASE_PAGES))
        for ref in self.own:
            self.sealer.seal_page(ref, PAGE_TOKENS)
        self.leases = [LeaseId(INCARNATION, 1 + row) for row in range(OTHER_ROWS)]
        for lease in self.leases:
            refs = self._take(OTHER_PAGES, lease)
            self._write(lease, refs)
            self.guard.add_row(lease, refs)
        self.lease = LeaseId(INCARNATION, 1000)
        self.key = lease_key(SECRET, self.lease)
        self.refs: tuple[PageRef, ...] = ()
        self.prefix_ledger = PageLedger(LEASE_PAGES)
        self.prefix = PrefixIndex(KvIdentity("model", "1", "bfloat16", PAGE_TOKENS), self.prefix_ledger)
        self.tokens = list(range(LEASE_TOKENS))
        pages = self.prefix_ledger.lease(LEASE_PAGES, 1)
        invariant(pages is not None, "the prefix pool holds the prompt")
        self.prefix_ledger.seal(pages)
        self.prefix.publish("a", self.tokens, pages)

    def _take(self, pages: int, lease: LeaseId) -> tuple[PageRef, ...]:
        refs = self.ledger.lease(pages, lease.sequence)
        invariant(refs is not None, "the pool holds every row and the incident's lease")
        return refs

    def _write(self, lease: LeaseId, refs: tuple[PageRef, ...]) -> None:
        trailers = memoryview(self.stage(lease, refs))
        for index, ref in enumerate(refs):
            self.pool.trailer(ref.page)[:] = trailers[64 * index : 64 * index + 64]

    def stage(self, lease: LeaseId, refs: tuple[PageRef, ...]) -> bytes:
        """Trailers of all pages of a lease."""
        key = lease_key(SECRET, lease)
        return self.sealer.stage_trailers(
            lease, key, sources=self.own[: len(refs)], targets=refs, first_ordinal=0
        )

    def take(self) -> None:
        """Lease the context's pages."""
        self.refs = self._take(LEASE_PAGES, self.lease)

    def written(self) -> None:
        """What the writer does, untimed."""
        self._write(self.lease, self.refs)

    def verify(self) -> None:
        """Judge all of them."""
        result = verify_handover(self.pool, self.lease, self.key, self.refs, LEASE_TOKENS, PAGE_TOKENS)
        invariant(result.reason is None, "a healthy hand-over verifies")
        self.ledger.seal(self.refs)

    def check(self, leases: list[LeaseId]) -> None:
        """One of a step's two checks."""
        invariant(not self.guard.check_before(leases), "a healthy deployment is silent")

    def release(self) -> None:
        """The lease ends: quarantine, then free."""
        self.ledger.close(self.refs)
        self.ledger.free(self.refs)

    def match(self) -> None:
        """Find all but the prompt's last page."""
        invariant(len(self.prefix.match("a", self.tokens)) == LEASE_PAGES - 1, "the prefix is known")


def parts_of(incident: Incident, step_ms: float) -> list[Part]:
    """In the order of one lease's life: each part needs what the one before it left."""
    lease, others = incident.lease, incident.leases
    step = "decode batch 16"
    sweep = PageSweep(incident.pool, incident.ledger, INCARNATION)

    def part(name: str, run: Callable[[], Any], share: float = 1, unit: str = "lease", **more: Any) -> Part:
        return Part(name, unit, 1, run, step, step_ms, share, cold=True, **more)

    return [
        part("prefix: match 65,535 pages", incident.match),
        part("lease 65,536 pages", incident.take),
        part("stamp them unwritten", lambda: stamp_unwritten(incident.pool, lease, incident.refs)),
        part("stage their trailers", lambda: incident.stage(lease, incident.refs)),
        part("verify them (without real digests)", incident.verify, before=incident.written),
        part("guard: take the row in", lambda: incident.guard.add_row(lease, incident.refs)),
        part("guard: first check of 127,492 pages", lambda: incident.check([lease, *others])),
        part("guard: check of one row", lambda: incident.check([lease]), share=2, unit="check"),
        part(
            "guard: check of the full pool, 16 rows",
            lambda: incident.check([lease, *others]),
            share=2,
            unit="check",
            before=lambda: incident.check([lease, *others]),
        ),
        part("guard: let the row go", lambda: incident.guard.remove_row(lease)),
        part("paranoid: sweep", sweep.check_some, unit="step"),
        part("release 65,536 pages", incident.release),
    ]


def run(*, quick: bool, decode_16_ms: float = DECODE_16_MS) -> dict[str, Any]:
    """Measure every part. The step's time is only what shares are taken of."""
    rows = measure(parts_of(Incident(), decode_16_ms), 3 if quick else 12)
    return {
        "name": "incident_size",
        "pool_pages": POOL_PAGES,
        "lease_pages": LEASE_PAGES,
        "rows": [asdict(row) for row in rows],
    }


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repeats")
    print(table(run(quick=parser.parse_args().quick)["rows"]))


if __name__ == "__main__":
    main()
