"""One prefill step: chunks of several prompts packed in one row, attended to in groups of equal shape.

Rules: chunks of one length and one start form a group, and a group is one call of the kernel. Without a
past a group attends causally to itself. With a past it reads its pages, and either masks, or (a large
chunk) attends to past and present apart and merges. Only a window's pages are read.

It does not choose chunks. The caller's order is kept for results; the packed order is its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kvfence.engine.attention import AttentionCall
from kvfence.engine.attention_kernels import Rules, attend_causal, attend_dense, attend_split, can_split
from kvfence.engine.attention_pages import Scratch, SlotWriter, additive, gather
from kvfence.engine.pool_views import PoolViews
from kvfence.protocol.errors import invariant

# Below this length two kernel calls and the merge cost more than the half of a mask they save.
SPLIT_TOKENS_MIN = 256


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """Tokens of one prompt from position `start` on, and the pages of its sequence in order.

    `pages` must cover the chunk; slots before `start` were written under the same lease or are sealed
    prefix pages. With `wants_logits` the step returns the logits of the chunk's last token.
    """

    tokens: Sequence[int]
    start: int
    pages: Sequence[int]
    wants_logits: bool


@dataclass(frozen=True, slots=True)
class _Group:
    """`count` chunks of `length` tokens that start at `start`, packed from `offset` on."""

    offset: int
    count: int
    length: int
    start: int
    chunks: tuple[PrefillChunk, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """Pages to gather for a group [count, n], the slots that matter, and the mask over those."""

    index: torch.Tensor
    slots: slice
    bias: torch.Tensor | None


class PrefillStep:
    """Attention of one prefill batch. Lives for one forward pass.

    `tokens` and `positions` are in packed order; `wanted` are the packed indexes of the tokens whose
    logits are wanted, in the caller's order.
    """

    def __init__(
        self, views: PoolViews, chunks: Sequence[PrefillChunk], scratch: Scratch, device: torch.device
    ) -> None:
        invariant(chunks, "a prefill step has chunks")
        size = views.page_tokens
        for chunk in chunks:
            end = chunk.start + len(chunk.tokens)
            invariant(chunk.tokens and chunk.start >= 0, "a chunk has tokens and a position")
            invariant(
                end <= len(chunk.pages) * size, f"a chunk that ends at {end} is outside its block table"
            )
        self._views, self._scratch, self._device = views, scratch, device
        order = sorted(range(len(chunks)), key=lambda index: (len(chunks[index].tokens), chunks[index].start))
        packed = [chunks[index] for index in order]
        self._groups = tuple(_group(packed))
        self.tokens = [token for chunk in packed for token in chunk.tokens]
        spans = [(chunk, range(chunk.start, chunk.start + len(chunk.tokens))) for chunk in packed]
        self.positions = [position for _, span in spans for position in span]
        pages = [chunk.pages[position // size] for chunk, span in spans for position in span]
        self._writer = SlotWriter(views, pages, [position % size for position in self.positions], device)
        self.wanted = _last_tokens(chunks, order)
        self._plans: dict[tuple[int, int | None, bool], _Plan] = {}

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Store the new keys and values, then attend group by group."""
        layer = call.layer
        self._writer.store(layer, call)
        outputs = [self._attend_group(layer, call, group) for group in self._groups]
        flat = [out.reshape(-1, *out.shape[2:]) for out in outputs]
        return (flat[0] if len(flat) == 1 else torch.cat(flat)).unsqueeze(0)

    def _attend_group(self, layer: int, call: AttentionCall, group: _Group) -> torch.Tensor:
        rules = Rules.of(call)
        query, key, value = (_take(numbers, group) for numbers in (call.query, call.key, call.value))
        fits = call.window is None or group.start + group.length <= call.window
        if group.start == 0 and fits:
            return attend_causal(query, key, value, rules)
        split = fits and group.length >= SPLIT_TOKENS_MIN and can_split(query, value, rules)
        plan = self._plan(group, call, split=split)
        old_key = gather(self._views.k[layer], plan.index, self._scratch, "key")[:, plan.slots]
        old_value = gather(self._views.v[layer], plan.index, self._scratch, "value")[:, plan.slots]
        if split:
            return attend_split(query, (old_key, old_value), (key, value), rules)
        return attend_dense(query, old_key, old_value, plan.bias, rules)

    def _plan(self, group: _Group, call: AttentionCall, *, split: bool) -> _Plan:
        name = (group.offset, call.window, split)
        if name not in self._plans:
            make = self._past_plan if split else self._masked_plan
            self._plans[name] = make(group, call)
        return self._plans[name]

    def _past_plan(self, group: _Group, call: AttentionCall) -> _Plan:
        """All pages of the past, and of those the slots before the chunk."""
        del call
        width = -(-group.start // self._views.page_tokens)
        return _Plan(self._index(group, 0, width), slice(0, group.start), None)

    def _masked_plan(self, group: _Group, call: AttentionCall) -> _Plan:
        """All pages that the window of the first token reaches, up to the chunk's end."""
        size = self._views.page_tokens
        end = group.start + group.length
        oldest = 0 if call.window is None else max(0, group.start - call.window + 1)
        first_page, width = oldest // size, -(-end // size)
        key_positions = torch.arange(oldest, end, device=self._device)
        query_positions = torch.arange(group.start, end, device=self._device)[:, None]
        visible = key_positions <= query_positions
        if call.window is not None:
            visible &= key_positions > query_positions - call.window
        slots = slice(oldest - first_page * size, end - first_page * size)
        bias = additive(visible, call.query.dtype)[None, None]
        return _Plan(self._index(group, first_page, width), slots, bias)

    def _index(self, group: _Group, first_page: int, end_page: int) -> torch.Tensor:
        pages = [list(chunk.pages[first_page:end_page]) for chunk in group.chunks]
        return torch.tensor(pages, dtype=torch.int64, device=self._device)


def _take(numbers: torch.Tensor, group: _Group) -> torch.Tensor:
    """Cut a group out of [1, heads, T, dim] → [count, length, heads, dim]."""
    part = numbers[0].transpose(0, 1)[group.offset : group.offset + group.count * group.length]
    return part.reshape(group.count, group.length, *part.shape[1:])


def _group(packed: Sequence[PrefillChunk]) -> list[_Group]:
    groups: list[_Group] = []
    offset = 0
    while packed:
        length, start = len(packed[0].tokens), packed[0].start
        count = sum(len(chunk.tokens) == length and chunk.start == start for chunk in packed)
        groups.append(_Group(offset, count, length, start, tuple(packed[:count])))
        offset += count * length
        packed = packed[count:]
    return groups


def _last_tokens(chunks: Sequence[PrefillChunk], order: Sequence[int]) -> list[int]:
    """Packed index of the last token of each chunk that wants logits, in the caller's order."""
    last = {}
    end = 0
    for index in order:
        end += len(chunks[index].tokens)
        last[index] = end - 1
    return [last[index] for index, chunk in enumerate(chunks) if chunk.wants_logits]
