"""Prefill jobs: prompts computed in chunks into this node's own pages, and the first token of each.

Like decode's executor it decides nothing about pages: the core leased them, the node checks each step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvfence.engine.decode_executor import sample_finite
from kvfence.engine.model import PagedModel, PrefillChunk
from kvfence.engine.pool_views import PoolViews
from kvfence.engine.prefill_schedule import ChunkPlan, PrefillSchedule
from kvfence.engine.sampler import Sampled, SampleRow
from kvfence.engine.sampling import SamplingParams
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId, PageRef


@dataclass(frozen=True, slots=True)
class PromptJob:
    """One prompt. The last `made_tokens` of its tokens are output of earlier attempts."""

    lease: LeaseId
    tokens: tuple[int, ...]
    pages: tuple[PageRef, ...]
    sampling: SamplingParams
    made_tokens: int
    cached_tokens: int

    def sample_row(self) -> SampleRow:
        """What the first token is sampled by."""
        prompt_length = len(self.tokens) - self.made_tokens
        counts: dict[int, int] = {}
        for token in self.tokens[prompt_length:]:
            counts[token] = counts.get(token, 0) + 1
        return SampleRow(self.sampling, len(self.tokens), self.tokens[:prompt_length], counts)


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """One chunk was computed; the prompt's last one brings the first token (None: logits no numbers)."""

    plan: ChunkPlan
    first: Sampled | None


class PrefillExecutor:
    """The prompts of one prefill node and the model that computes them."""

    def __init__(self, model: PagedModel, views: PoolViews, *, chunk_tokens: int) -> None:
        self._model, self._views, self._chunk_tokens = model, views, chunk_tokens
        self.jobs: dict[LeaseId, PromptJob] = {}
        self.schedule = PrefillSchedule()

    def start(self, job: PromptJob) -> None:
        """Let the prompt be computed, from its cached tokens on."""
        invariant(job.lease not in self.jobs, f"{job.lease} is started once")
        self.jobs[job.lease] = job
        self.schedule.add(job.lease, len(job.tokens), job.cached_tokens)

    def stop(self, lease: LeaseId) -> None:
        """Compute no more of it."""
        self.jobs.pop(lease, None)
        self.schedule.remove(lease)

    def plan(self) -> list[ChunkPlan]:
        """The chunks of the next step."""
        return self.schedule.next_step(self._chunk_tokens)

    def forward(self, plans: Sequence[ChunkPlan]) -> list[ChunkDone]:
        """Compute the chunks in one pass, and sample where a prompt ends."""
        chunks = [self._chunk(plan) for plan in plans]
        logits = self._model.prefill(self._views, chunks)
        ending = [plan for plan in plans if plan.last]
        sampled: list[Sampled | None] = []
        if ending:
            sampled = sample_finite(logits, [self.jobs[plan.lease].sample_row() for plan in ending])
        first = dict(zip((plan.lease for plan in ending), sampled, strict=True))
        return [ChunkDone(plan, first.get(plan.lease)) for plan in plans]

    def _chunk(self, plan: ChunkPlan) -> PrefillChunk:
        job = self.jobs[plan.lease]
        return PrefillChunk(
            tokens=job.tokens[plan.start : plan.end],
            start=plan.start,
            pages=[ref.page for ref in job.pages],
            wants_logits=plan.last,
        )
