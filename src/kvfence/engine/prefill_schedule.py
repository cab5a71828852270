"""Which part of which prompt is computed in the next prefill step.

The policy, in the order in which it decides:
- Requests stand in a ring, new ones at its end. The head of the ring is served first, with up to the whole
  budget; if its prompt is not finished by that, it goes to the end.
- What is left of the budget goes to the following prompts in ring order. One that does not fit gets a cut
  chunk, if at least `CHUNK_TOKENS_MIN` are left for it, and keeps its place, so that it is served early in
  the next step. When less is left, only prompts that fit whole may still join.
- So several short prompts share a step, a long one advances by a chunk a turn, and with n requests in the
  ring each of them is at the head at least once in n steps: none starves, whatever arrives after it.

It is pure (no tensor, no clock): the simulator runs the same class. It does not own pages or decide on
admission, and planning a chunk counts it as done: a failed step ends its requests with `remove`.
"""

from collections import OrderedDict
from dataclasses import dataclass

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId

# A shorter piece of a long prompt costs a pass over all of its past for little progress.
CHUNK_TOKENS_MIN = 64
# Bounds on the ring and on one step. Admission by pages is far tighter in practice.
PROMPTS_MAX = 65_536
PROMPTS_PER_STEP_MAX = 256

__all__ = ["CHUNK_TOKENS_MIN", "PROMPTS_MAX", "PROMPTS_PER_STEP_MAX", "ChunkPlan", "PrefillSchedule"]


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """Compute tokens `start` … `end - 1` of the lease's prompt; `last` says that the prompt ends there."""

    lease: LeaseId
    start: int
    end: int
    last: bool


@dataclass(slots=True)
class _Prompt:
    total_tokens: int
    done_tokens: int

    @property
    def left_tokens(self) -> int:
        return self.total_tokens - self.done_tokens


class PrefillSchedule:
    """The prompts of one prefill node that are not computed yet."""

    def __init__(self) -> None:
        """Start with an empty ring."""
        self._ring: OrderedDict[LeaseId, _Prompt] = OrderedDict()

    def __len__(self) -> int:
        """Prompts that still have tokens to compute."""
        return len(self._ring)

    def __contains__(self, lease: LeaseId) -> bool:
        """Whether the lease's prompt still has tokens to compute."""
        return lease in self._ring

    def add(self, lease: LeaseId, tokens_total: int, cached_tokens: int) -> None:
        """Put a prompt at the end of the ring; its first `cached_tokens` are there already."""
        invariant(lease not in self._ring, f"{lease} is scheduled once")
        invariant(0 <= cached_tokens < tokens_total, "at least one token of a prompt is computed")
        invariant(len(self._ring) < PROMPTS_MAX, "admission bounds the prompts of a node")
        self._ring[lease] = _Prompt(tokens_total, cached_tokens)

    def remove(self, lease: LeaseId) -> None:
        """Forget a prompt. One that is finished or was never added is not there, which is no fault."""
        self._ring.pop(lease, None)

    def next_step(self, budget_tokens: int) -> list[ChunkPlan]:
        """Plan chunks of at most `budget_tokens` together; empty when nothing is left to compute."""
        invariant(budget_tokens > 0, "a step without a budget would never end a prompt")
        plans: list[ChunkPlan] = []
        left = budget_tokens
        for lease, prompt in self._ring.items():
            if left == 0 or len(plans) == PROMPTS_PER_STEP_MAX:
                break
            taken = min(prompt.left_tokens, left)
            is_cut = taken < prompt.left_tokens
            if is_cut and plans and left < CHUNK_TOKENS_MIN:
                continue
            start = prompt.done_tokens
            plans.append(ChunkPlan(lease, start, start + taken, last=not is_cut))
            left -= taken
        self._advance(plans)
        return plans

    def _advance(self, plans: list[ChunkPlan]) -> None:
        for plan in plans:
            self._ring[plan.lease].done_tokens = plan.end
            if plan.last:
                del self._ring[plan.lease]
        if plans and not plans[0].last:
            self._ring.move_to_end(plans[0].lease)
