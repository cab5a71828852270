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

# Keys and values that are gathered before they are attended to, for each thread. Measured in float32 at
# batch 16 and 512 tokens: 3 MiB at a time take 0.85 of the time of gathering the whole batch first.
BLOCK_BYTES = 13 << 18


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One token to feed: its id, its position, and the pages of its sequence in order.

    `pages` must cover `position`; slots up to `position - 1` were written under the same lease.
    """

    token: int
    position: int
    pages: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Block:
    """Some rows that are gathered and attended to together: their pages [rows x n] and their mask."""

    rows: slice
    index: torch.Tensor
    bias: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """The blocks of a batch, and how many of the gathered slots matter."""

    blocks: tuple[_Block, ...]
    length: int


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
        self._plans: dict[tuple[int | None, int], _Plan] = {}

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """Store the new keys and values, then attend over the rows' pages."""
        layer = call.layer
        self._writer.store(layer, call)
        k_view, v_view = self._views.k[layer], self._views.v[layer]
        plan = self._plan(call, self._views.region_bytes[layer])
        query = call.query[0].transpose(0, 1).unsqueeze(1)
        rules = Rules.of(call)
        outputs = []
        for block in plan.blocks:
            key = gather(k_view, block.index, self._scratch, "key")[:, : plan.length]
            value = gather(v_view, block.index, self._scratch, "value")[:, : plan.length]
            outputs.append(attend_dense(query[block.rows], key, value, block.bias, rules))
        return (outputs[0] if len(outputs) == 1 else torch.cat(outputs)).transpose(0, 1)

    def _plan(self, call: AttentionCall, page_bytes: int) -> _Plan:
        name = (call.window, page_bytes)
        if name not in self._plans:
            self._plans[name] = self._make_plan(call.window, call.query.dtype, page_bytes)
        return self._plans[name]

    def _make_plan(self, window: int | None, dtype: torch.dtype, page_bytes: int) -> _Plan:
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
        bias = None
        if any(firsts) or min(lasts) != max(lasts):
            slots = torch.arange(length, device=self._device)
            first = torch.tensor(firsts, device=self._device)[:, None]
            last = torch.tensor(lasts, device=self._device)[:, None]
            bias = additive((slots >= first) & (slots <= last), dtype)[:, None, None, :]
        return _Plan(_blocks(index, bias, width * page_bytes), length)


def _blocks(index: torch.Tensor, bias: torch.Tensor | None, row_bytes: int) -> tuple[_Block, ...]:
    """Cut a batch into blocks of about equal size, of which each fits `BLOCK_BYTES` a thread."""
    count = len(index)
    rows_max = max(1, torch.get_num_threads() * BLOCK_BYTES // row_bytes)
    size = -(-count // -(-count // rows_max))
    parts = [slice(start, min(start + size, count)) for start in range(0, count, size)]
    return tuple(_Block(rows, index[rows], None if bias is None else bias[rows]) for rows in parts)
