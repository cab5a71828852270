"""One decode step: each row brings one token and attends over its own pages.

Rules: the mask is built once a step for each window, and not at all when every row is equally long. A
window's pages alone are gathered, a few rows at a time, so that they are still in the processor's cache
when they are attended to. Rows that are shorter than the longest are filled up with the padding
page and masked.

It does not choose the rows and does not pad the batch; its caller may, with rows on the padding page.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kvfence.engine.attention import AttentionCall
from kvfence.engine.attention_kernels import Rules, attend_dense
from kvfence.engine.attention_pages import Scratch, SlotWriter, additive, gather
from kvfence.engine.pool_views import PoolViews
from kvfence.protocol.errors import invariant

# Keys and values gathered before they are attended to, for each thread. Measured at batch 16 and 512
# tokens: 0.75 to 3 MiB takes 0.85 of the time of gathering the whole batch first.
BLOCK_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One token to feed: its id, its position, and the pages of its sequence in order.

    `pages` must cover `position`; slots up to `position - 1` were written under the same lease.
    """

    token: int
    position: int
    pages: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The pages to gather [rows x n], how many of their slots matter, and the mask over those."""

    index: torch.Tensor
    length: int
    bias: torch.Tensor | None


class DecodeStep:
    """Attention of one decode batch. Lives for one forward pass."""

    def __init__(
        self, views: PoolViews, rows: Sequence[DecodeRow], scratch: Scratch, device: torch.device
    ) -> None:
        invariant(rows, "a decode step has rows")
        size = views.page_tokens
        for row in rows:
            invariant(
                0 <= row.position < len(row.pages) * size,
                f"position {row.position} is outside its block table",
            )
        self._views, self._rows, self._scratch, self._device = views, rows, scratch, device
        self._writer = SlotWriter(
            views,
            [row.pages[row.position // size] for row in rows],
            [row.position % size for row in rows],
            device,
        )
        self._plans: dict[int | None, _Plan] = {}

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Store the new keys and values, then attend over the rows' pages."""
        layer = call.layer
        self._writer.store(layer, call)
        plan = self._plans.get(call.window)
        if plan is None:
            plan = self._plans[call.window] = self._make_plan(call.window, call.query.dtype)
        query = call.query[0].transpose(0, 1).unsqueeze(1)
        rules = Rules.of(call)
        blocks = plan.index.split(self._rows_in_block(layer, plan))
        queries = query.split(len(blocks[0]))
        biases = [None] * len(blocks) if plan.bias is None else plan.bias.split(len(blocks[0]))
        outputs = []
        for index, part, bias in zip(blocks, queries, biases, strict=True):
            key = self._gather(self._views.k[layer], index, "key")[:, : plan.length]
            value = self._gather(self._views.v[layer], index, "value")[:, : plan.length]
            outputs.append(attend_dense(part, key, value, bias, rules))
        return torch.cat(outputs).transpose(0, 1)

    def _gather(self, view: torch.Tensor, index: torch.Tensor, name: str) -> torch.Tensor:
        return gather(view, index.flatten(), len(index), self._scratch, name)

    def _rows_in_block(self, layer: int, plan: _Plan) -> int:
        page_bytes: int = sum(view[0].nbytes for view in (self._views.k[layer], self._views.v[layer]))
        row_bytes = int(plan.index.shape[1]) * page_bytes
        return max(1, int(torch.get_num_threads()) * BLOCK_BYTES // row_bytes)

    def _make_plan(self, window: int | None, dtype: torch.dtype) -> _Plan:
        size, padding = self._views.page_tokens, self._views.padding_page
        tables, firsts, lasts = [], [], []
        for row in self._rows:
            oldest = 0 if window is None else max(0, row.position - window + 1)
            start = oldest // size
            tables.append(row.pages[start : row.position // size + 1])
            firsts.append(oldest - start * size)
            lasts.append(row.position - start * size)
        width = max(len(table) for table in tables)
        flat = [page for table in tables for page in (*table, *[padding] * (width - len(table)))]
        index = torch.tensor(flat, dtype=torch.int64, device=self._device).view(-1, width)
        length = max(lasts) + 1
        if not any(firsts) and min(lasts) == max(lasts):
            return _Plan(index, length, None)
        slots = torch.arange(length, device=self._device)
        first = torch.tensor(firsts, device=self._device)[:, None]
        last = torch.tensor(lasts, device=self._device)[:, None]
        visible = (slots >= first) & (slots <= last)
        return _Plan(index, length, additive(visible, dtype)[:, None, None, :])
