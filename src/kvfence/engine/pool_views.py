"""The KV pool as tensors: K and V of each layer as strided views of the pool's bytes, without a copy.

Rules: a view covers the slots of a region and nothing else, so no write through it can touch a seal.
A view lives as long as the mapping; what a slot holds belongs to the lease that wrote it.

It does not know which page may be read by whom: the caller's block tables say so, the guard checks them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kvfence.kv.layout import PageLayout, Region
from kvfence.kv.pool import Pool
from kvfence.protocol import CORRECT, Decisions
from kvfence.protocol.errors import invariant

TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, slots=True)
class PoolViews:
    """`k[layer]` is [pages + 1, page_tokens, kv_heads, k_dim], `v[layer]` the same with v_dim.

    `region_bytes[layer]` counts the bytes of both in one page. The row after the last leasable page is
    the padding page: zeros, never written by a step.
    """

    k: tuple[torch.Tensor, ...]
    v: tuple[torch.Tensor, ...]
    region_bytes: tuple[int, ...]
    page_tokens: int
    padding_page: int


def pool_views(pool: Pool, decisions: Decisions = CORRECT) -> PoolViews:
    """Views of a pool in shared memory; the decisions say which page is the padding page."""
    return buffer_views(torch.from_numpy(pool.buffer), pool.layout, padding_of=decisions.padding_page)


def buffer_views(
    buffer: torch.Tensor, layout: PageLayout, *, padding_of: Callable[[int], int] = CORRECT.padding_page
) -> PoolViews:
    """Views of any buffer of pages (uint8, one dimension, on any device), the padding page last."""
    invariant(buffer.dtype == torch.uint8 and buffer.dim() == 1, "a pool is a flat buffer of bytes")
    invariant(buffer.numel() % layout.page_bytes == 0, "a pool is a whole number of pages")
    rows = buffer.numel() // layout.page_bytes
    numbers = buffer.view(TORCH_DTYPES[layout.dtype])
    k, v, sizes = [], [], []
    for layer, shape in enumerate(layout.layers):
        k_region, v_region = layout.regions[2 * layer], layout.regions[2 * layer + 1]
        sizes.append(k_region.region_bytes + v_region.region_bytes)
        k.append(_region_view(numbers, layout, k_region, (rows, shape.kv_heads, shape.k_dim)))
        v.append(_region_view(numbers, layout, v_region, (rows, shape.kv_heads, shape.v_dim)))
    return PoolViews(tuple(k), tuple(v), tuple(sizes), layout.page_tokens, padding_page=padding_of(rows - 1))


def _region_view(
    numbers: torch.Tensor, layout: PageLayout, region: Region, sizes: tuple[int, int, int]
) -> torch.Tensor:
    rows, heads, dim = sizes
    return numbers.as_strided(
        (rows, layout.page_tokens, heads, dim),
        (layout.page_bytes // layout.itemsize, heads * dim, dim, 1),
        region.offset // layout.itemsize,
    )
