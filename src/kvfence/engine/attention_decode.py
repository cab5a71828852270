"""One decode step: each row brings one token and attends over its own pages.

Rules: the mask is built once a step for each window, and not at all when every row is equally long. A
window's pages alone are gathered. Rows that are shorter than the longest are filled up with the padding
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
        count = len(self._rows)
        key = gather(self._views.k[layer], plan.index, count, self._scratch, "key")
        value = gather(self._views.v[layer], plan.index, count, self._scratch, "value")
        query = call.query[0].transpose(0, 1).unsqueeze(1)
        out = attend_dense(query, key[:, : plan.length], value[:, : plan.length], plan.bias, Rules.of(call))
        return out.transpose(0, 1)

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
        index = torch.tensor(flat, dtype=torch.int64, device=self._device)
        length = max(lasts) + 1
        if not any(firsts) and min(lasts) == max(lasts):
            return _Plan(index, length, None)
        slots = torch.arange(length, device=self._device)
        first = torch.tensor(firsts, device=self._device)[:, None]
        last = torch.tensor(lasts, device=self._device)[:, None]
        visible = (slots >= first) & (slots <= last)
        return _Plan(index, length, additive(visible, dtype)[:, None, None, :])
