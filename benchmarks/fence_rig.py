"""A prefill and a decode node in one process, without their cores: real model, pools, ledgers and fence.

Rules: what touches the bytes of pages is the nodes' own code (`PrefillPages`, `DecodePages`, the
executors), called in the order in which the nodes call it; each of its calls is metered by name. Leases
come from the real ledgers. Pages are copied by the caller's thread, as the shared-memory transport does.

It leaves out what does not depend on the fence's level: the protocol's cores, the control plane, HTTP.
"""

from dataclasses import dataclass

import numpy as np
from benchmarks.timing import Meter

from kvfence.engine.decode_executor import DecodeExecutor, Row
from kvfence.engine.model import PagedModel
from kvfence.engine.pool_views import pool_views
from kvfence.engine.prefill_executor import PrefillExecutor, PromptJob
from kvfence.engine.sampling import SamplingParams
from kvfence.kv import FenceLevel, Pool
from kvfence.protocol import PageLedger, commands
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import AttemptId, LeaseId, Manifest, PageRef, Peer
from kvfence.serving.decode_pages import DecodePages
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.transport import TRAILER_BYTES, WriteBatch

PAGE_TOKENS = 16
CHUNK_TOKENS = 1024
BATCH_BYTES = 8 * 1024 * 1024
ROWS_MAX = 16
INCARNATION = 7
ROUTER, PREFILL, DECODE = Peer("router", 1), Peer("prefill-0", 1), Peer("decode-0", INCARNATION)
SECRET = bytes(range(32))
GREEDY = SamplingParams(seed=1, temperature=0.0, ignore_eos=True)
NEVER = 1 << 30  # tokens that a row may make: more than any measurement takes

# The names under which the fence's calls are metered. The first group is paid by a prompt on the prefill
# node, the second by a prompt on the decode node, the third in every decode step.
WRITER_PARTS = ("ownership check", "seal", "stage trailers")
HANDOVER_PARTS = ("stamp", "verify", "adopt")
STEP_PARTS = ("guard before", "guard after", "grow", "seal own")


@dataclass(frozen=True)
class Prompt:
    """A prompt's lease, and the pages on both sides."""

    lease: LeaseId
    tokens: tuple[int, ...]
    own: tuple[PageRef, ...]
    targets: tuple[PageRef, ...]


class FenceRig:
    """One fence level. `meter` has the CPU time of the fence's own calls since it was last taken."""

    def __init__(self, model: PagedModel, level: FenceLevel, *, prompt_pages: int, decode_pages: int) -> None:
        layout = model.page_layout(PAGE_TOKENS)
        self.meter = Meter()
        self.source, self.target = Pool.create(layout, prompt_pages), Pool.create(layout, decode_pages)
        _fill(self.source)
        self.target.buffer[:] = 0  # touched once, so that no first touch is timed
        self.source_ledger, self.ledger = PageLedger(prompt_pages), PageLedger(decode_pages)
        self.writer = PrefillPages(self.source, self.source_ledger, level=level)
        self.pages = DecodePages(
            self.target, self.ledger, level=level, incarnation=INCARNATION, node_secret=SECRET
        )
        self.prefill = PrefillExecutor(model, pool_views(self.source), chunk_tokens=CHUNK_TOKENS)
        self.decode = DecodeExecutor(
            model, pool_views(self.target), page_tokens=PAGE_TOKENS, max_batch=ROWS_MAX
        )
        self._sequence = 0
        self._batch_pages = max(1, BATCH_BYTES // layout.page_bytes)

    # ------------------------------------------------------------ a prompt's way to decode
    def reserve(self, tokens: tuple[int, ...]) -> Prompt:
        """Lease pages on both sides; decode's are stamped."""
        self._sequence += 1
        lease = LeaseId(INCARNATION, self._sequence)
        count = self.source.layout.pages_for(len(tokens))
        own, targets = (ledger.lease(count, lease.sequence) for ledger in (self.source_ledger, self.ledger))
        invariant(own is not None and targets is not None, "the rig's pools hold its prompts")
        with self.meter.part("stamp"):
            self.pages.stamp(lease, targets)
        attempt = AttemptId(1, lease.sequence, 1)
        self.writer.begin(
            commands.StartPrefill(lease, attempt, tokens, own, cached_tokens=0, owner=lease.sequence)
        )
        return Prompt(lease, tokens, own, targets)

    def compute(self, prompts: list[Prompt]) -> None:
        """Run the prompts through the model in chunks, sealing what is full, as a prefill node does."""
        for prompt in prompts:
            self.prefill.start(
                PromptJob(prompt.lease, prompt.tokens, prompt.own, GREEDY, made_tokens=0, cached_tokens=0)
            )
        while plans := self.prefill.plan():
            leases = [plan.lease for plan in plans]
            self._check_owned(leases)
            done = self.prefill.forward(plans)
            self._check_owned(leases)
            for chunk in done:
                self.seal(chunk.plan.lease, chunk.plan.end, last=chunk.plan.last)
        for prompt in prompts:
            self.prefill.stop(prompt.lease)

    def seal(self, lease: LeaseId, tokens_done: int, *, last: bool) -> None:
        """Seal a prompt's full pages, and its last one."""
        with self.meter.part("seal"):
            self.writer.seal_until(lease, tokens_done, last=last)

    def _check_owned(self, leases: list[LeaseId]) -> None:
        with self.meter.part("ownership check"):
            lost = [self.writer.lost_pages(lease) for lease in leases]
        invariant(not any(lost), "a healthy prompt keeps its pages")

    def send(self, prompt: Prompt) -> None:
        """Stage trailers batch by batch, and copy the pages."""
        key = self.pages.key(prompt.lease)
        for first in range(0, len(prompt.own), self._batch_pages):
            end = first + self._batch_pages
            command = commands.PostBatch(
                prompt.lease, first, DECODE, first, prompt.own[first:end], prompt.targets[first:end]
            )
            with self.meter.part("stage trailers"):
                batch = self.writer.stage(command, key)
            self._copy(batch)

    def _copy(self, batch: WriteBatch) -> None:
        trailers = np.frombuffer(batch.trailers, np.uint8).reshape(-1, TRAILER_BYTES)
        for source, target, trailer in zip(batch.sources, batch.targets, trailers, strict=True):
            self.target.payload(target.page)[:] = self.source.payload(source)
            self.target.trailer(target.page)[:] = trailer

    def accept(self, prompt: Prompt) -> Row:
        """Verify and adopt, as a decode node does when the writer has closed; the row to start."""
        tokens = len(prompt.tokens)
        with self.meter.part("verify"):
            result = self.pages.verify(prompt.lease, prompt.targets, tokens)
        invariant(result.reason is None, f"a healthy hand-over verifies: {result}")
        self.ledger.seal(prompt.targets)
        tail = self.ledger.lease(1, prompt.lease.sequence)
        invariant(tail is not None, "the rig's pools hold its rows")
        attempt = AttemptId(1, prompt.lease.sequence, 1)
        manifest = Manifest(prompt.lease, PREFILL, tokens, len(prompt.targets), b"", 1, tokens)
        start = commands.StartRow(prompt.lease, attempt, manifest, prompt.targets, tail[0])
        with self.meter.part("adopt"):
            table, _ = self.pages.adopt(start, tokens)
        return Row(
            prompt.lease, attempt, ROUTER, GREEDY, table, position=tokens, last_token=1, left_tokens=NEVER
        )

    def forget(self, prompt: Prompt, *, row: Row | None) -> None:
        """Give everything back: the prompt's pages, and the row's when it was accepted."""
        self.writer.leave(prompt.lease)
        self.source_ledger.close(prompt.own)
        self.source_ledger.free(prompt.own)
        if row is None:
            return
        self.pages.leave(prompt.lease)
        self.decode.stop(prompt.lease)
        refs = tuple(dict.fromkeys((*prompt.targets, *row.pages)))
        self.ledger.close(refs)
        self.pages.freed(self.ledger.free(refs))

    # ------------------------------------------------------------ decode steps
    def start_rows(self, lengths: list[int]) -> None:
        """Hand over prompts whose pages were not computed (finite numbers stand there), and run them."""
        for tokens in lengths:
            prompt = self.reserve((1,) * tokens)
            self.seal(prompt.lease, tokens, last=True)
            self.send(prompt)
            self.decode.start(self.accept(prompt))
            self.forget(prompt, row=None)

    def step(self) -> None:
        """One decode step over all rows, as a decode node makes it; a row that needs a page gets it first."""
        rows, wanting = self.decode.plan()
        if wanting:
            for lease in wanting:
                self._grow(lease)
            more, _ = self.decode.plan()
            rows = more
        leases = [row.lease for row in rows]
        with self.meter.part("guard before"):
            found = self.pages.check_before(leases)
        invariant(not found, "a healthy step is silent")
        logits = self.decode.forward(rows)
        with self.meter.part("guard after"):
            found = self.pages.check_after(leases)
        invariant(not found, "a healthy step is silent")
        for stepped in self.decode.advance(rows, logits):
            row = stepped.row
            if row.position % PAGE_TOKENS == 0:
                ordinal = row.position // PAGE_TOKENS - 1
                with self.meter.part("seal own"):
                    self.pages.seal_own(row.lease, row.pages[ordinal], ordinal)

    def _grow(self, lease: LeaseId) -> None:
        row = self.decode.rows[lease]
        page = self.ledger.lease(1, lease.sequence)
        invariant(page is not None, "the rig's pools hold its rows")
        with self.meter.part("grow"):
            self.pages.grow(lease, page[0], ordinal=len(row.pages))
        self.decode.grow(lease, page[0])


def _fill(pool: Pool) -> None:
    """Small finite numbers everywhere but in the padding page."""
    page = np.full(pool.layout.payload_bytes // 2, 0x3C00, np.uint16).view(np.uint8)
    pool.rows[: pool.pages, : pool.layout.payload_bytes] = page
