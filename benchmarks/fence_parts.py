"""What each part of the fence costs, and its share of the step that it is part of.

Rules: pages of SmolLM2's size in bf16; parts run in turn, the least of the repeats counts, the spread is
beside it; shares are CPU time of the part over the step's time. The steps' times are arguments: what was
measured on a 2-core machine, or what the caller measures. Nothing here fails on a slow machine.

Run it: python -m benchmarks.fence_parts [--quick]
"""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.measure import Part, measure, table

from kvfence.kv import (
    LayerShape,
    PageLayout,
    PageSealer,
    PageSweep,
    Pool,
    StepGuard,
    copy_tail,
    digest_page,
    lease_key,
    open_page,
    seal_own_page,
    stamp_unwritten,
    verify_handover,
)
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.words import LeaseId, PageRef

SMOLLM2 = PageLayout((LayerShape(3, 64, 64),) * 30, 16, "bfloat16")
PROMPT_TOKENS = 512
PROMPT_PAGES = SMOLLM2.pages_for(PROMPT_TOKENS)
BATCH_PAGES = 8 * 1024 * 1024 // SMOLLM2.page_bytes
ROWS = 16
PAGES = (ROWS + 1) * (PROMPT_PAGES + 2)
INCARNATION = 7
SECRET = bytes(range(32))

# A short decode step is the hard case for a share; prefill as measured at 1,796 tokens a second.
DECODE_1_MS = 10.0
DECODE_16_MS = 60.0
PREFILL_512_MS = 285.0


class Deployment:
    """A prefill and a decode pool with sixteen verified rows, and one prompt under way."""

    def __init__(self) -> None:
        self.source, self.target = Pool.create(SMOLLM2, PROMPT_PAGES + 1), Pool.create(SMOLLM2, PAGES)
        self.source.buffer[:] = 1
        self.sealer = PageSealer(self.source)
        self.own = tuple(PageRef(page, 1) for page in range(PROMPT_PAGES))
        for ref in self.own:
            self.sealer.seal_page(ref, SMOLLM2.page_tokens)
        self.ledger = PageLedger(PAGES)
        self.guard = StepGuard(self.target, self.ledger, INCARNATION)
        self.leases = [LeaseId(INCARNATION, sequence) for sequence in range(1, ROWS + 1)]
        for lease in self.leases:
            self.start(lease)
        self.arriving = LeaseId(INCARNATION, ROWS + 1)
        self.arrived = self.hand_over(self.arriving)
        for _ in range(2):  # nobody is in their first step any more
            self.check(self.leases)

    def hand_over(self, lease: LeaseId) -> tuple[PageRef, ...]:
        """Lease, stamp and write a prompt's pages."""
        refs = self.ledger.lease(PROMPT_PAGES, lease.sequence)
        invariant(refs is not None, "the pool holds every row")
        stamp_unwritten(self.target, lease, refs)
        trailers = self.stage(lease, refs)
        for index, ref in enumerate(refs):
            self.target.payload(ref.page)[:] = self.source.payload(index)
            self.target.trailer(ref.page)[:] = memoryview(trailers)[64 * index : 64 * index + 64]
        self.ledger.seal(refs)
        return refs

    def stage(self, lease: LeaseId, refs: tuple[PageRef, ...]) -> bytes:
        """Trailers for the first `refs` of a prompt."""
        return self.sealer.stage_trailers(
            lease,
            lease_key(SECRET, lease),
            sources=self.own[: len(refs)],
            targets=refs,
            first_ordinal=0,
        )

    def start(self, lease: LeaseId) -> None:
        """Hand over, then guard the row with an empty page of its own at the end."""
        refs = self.hand_over(lease)
        tail = self.ledger.lease(1, lease.sequence)
        invariant(tail is not None, "the pool holds every row")
        open_page(self.target, lease, tail[0], PROMPT_PAGES)
        self.guard.add_row(lease, refs + tail)

    def check(self, leases: list[LeaseId]) -> None:
        """What one step costs: before and after."""
        found = self.guard.check_before(leases) + self.guard.check_after(leases)
        invariant(not found, "a healthy deployment is silent")

    def verify(self) -> None:
        """Judge the prompt that arrived."""
        key = lease_key(SECRET, self.arriving)
        result = verify_handover(
            self.target, self.arriving, key, self.arrived, PROMPT_TOKENS, SMOLLM2.page_tokens
        )
        invariant(result.reason is None, "a healthy hand-over verifies")


def prefill_parts(deployment: Deployment, step_ms: float) -> list[Part]:
    """Parts that a prompt of 512 tokens pays once, on either side."""
    source, lease, refs = deployment.source, deployment.arriving, deployment.arrived
    step = f"prefill 1 x {PROMPT_TOKENS}"

    def part(name: str, unit: str, units: int, share: float, run: Callable[[], Any], calls: int = 1) -> Part:
        return Part(name, unit, units, run, step, step_ms, share, cold=True, calls=calls)

    def digest() -> None:
        for page in range(PROMPT_PAGES):
            digest_page(source.payload(page))

    return [
        part("seal: digest", "page", PROMPT_PAGES, PROMPT_PAGES, digest),
        part("seal: zero half a page", "page", 1, 1, lambda: source.zero_slots(PROMPT_PAGES, 8)),
        part(
            "seal: stage trailers",
            "page",
            BATCH_PAGES,
            PROMPT_PAGES,
            lambda: deployment.stage(lease, refs[:BATCH_PAGES]),
        ),
        part("verify at hand-over", "page", PROMPT_PAGES, PROMPT_PAGES, deployment.verify),
    ]


def decode_parts(deployment: Deployment, rows: int, step_ms: float) -> list[Part]:
    """Parts of a decode step of `rows` rows, cold as after a forward pass, and hot."""
    step = f"decode batch {rows}"
    leases = deployment.leases[:rows]
    pages = rows * (PROMPT_PAGES + 1)
    target, scratch = deployment.target, PageRef(PAGES - 1, 1)
    growth_a_step = rows / SMOLLM2.page_tokens

    def check() -> None:  # twice a step: before the pass, and after it, when the caches are cold again
        invariant(not deployment.guard.check_before(leases), "a healthy deployment is silent")

    def part(name: str, unit: str, share: float, run: Callable[[], Any], *, cold: bool = True) -> Part:
        calls = 1 if cold else 20
        before = None if cold else (lambda: deployment.check(leases))
        return Part(name, unit, 1, run, step, step_ms, share, cold=cold, calls=calls, before=before)

    return [
        part(f"guard of {pages} pages, hot", "check", 2, check, cold=False),
        part(f"guard of {pages} pages, cold", "check", 2, check),
        part("open a page", "page", growth_a_step, lambda: open_page(target, leases[0], scratch, 9)),
    ]


def one_off_parts(deployment: Deployment, step_ms: float) -> list[Part]:
    """Parts that a request pays once or that only `paranoid` pays, against a step of batch 16."""
    target, lease, scratch = deployment.target, deployment.arriving, PageRef(PAGES - 1, 1)
    key = lease_key(SECRET, lease)
    sweep = PageSweep(target, deployment.ledger, INCARNATION)
    refs = deployment.arrived

    def tail() -> None:
        copy_tail(target, lease, source=refs[0], target=scratch, ordinal=9, valid_tokens=8)

    def stamp() -> None:
        stamp_unwritten(target, lease, [PageRef(PAGES - 1 - index, 1) for index in range(8)])

    def part(name: str, unit: str, units: int, run: Callable[[], Any], share: float) -> Part:
        return Part(name, unit, units, run, "decode batch 16", step_ms, share, cold=True)

    return [
        part("stamp unwritten (a request's pages)", "page", 8, stamp, PROMPT_PAGES),
        part("copy the tail (a request)", "page", 1, tail, 1),
        part("paranoid: sweep of 8 pages", "step", 1, sweep.check_some, 1),
        part(
            "paranoid: seal a page of its own",
            "page",
            1,
            lambda: seal_own_page(target, lease, key, scratch, 9),
            1,
        ),
    ]


def run(
    *,
    quick: bool,
    decode_1_ms: float = DECODE_1_MS,
    decode_16_ms: float = DECODE_16_MS,
    prefill_512_ms: float = PREFILL_512_MS,
) -> dict[str, Any]:
    """Measure every part. The steps' times are only what shares are taken of."""
    deployment = Deployment()
    parts = [
        *prefill_parts(deployment, prefill_512_ms),
        *decode_parts(deployment, 1, decode_1_ms),
        *decode_parts(deployment, ROWS, decode_16_ms),
        *one_off_parts(deployment, decode_16_ms),
    ]
    rows = measure(parts, 10 if quick else 60)
    return {"name": "fence_parts", "page_bytes": SMOLLM2.page_bytes, "rows": [asdict(row) for row in rows]}


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repeats")
    print(table(run(quick=parser.parse_args().quick)["rows"]))


if __name__ == "__main__":
    main()
