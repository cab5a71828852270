"""Moving keys and values between a step and the pages it owns.

Rules: a step stores into exactly the slots it was given; it gathers whole pages of its own block
tables. Gathered numbers land in scratch that is overwritten before it is read again.

It does not attend and does not decide who owns a page.
"""

import math
from collections.abc import Sequence

import torch

from kvfence.engine.attention import AttentionCall
from kvfence.engine.pool_views import PoolViews
from kvfence.protocol.errors import invariant


class Scratch:
    """Buffers that steps reuse, so that a gather does not pay for fresh memory in each layer.

    A tensor it lends is valid until the next one of that name is lent.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype, torch.device], torch.Tensor] = {}

    def lend(self, name: str, shape: Sequence[int], like: torch.Tensor) -> torch.Tensor:
        """Return a tensor of `shape` with arbitrary content, of the dtype and device of `like`."""
        needed = math.prod(shape)
        key = (name, like.dtype, like.device)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.numel() < needed:
            buffer = torch.empty(needed, dtype=like.dtype, device=like.device)
            self._buffers[key] = buffer
        return buffer[:needed].view(shape)


class SlotWriter:
    """The slots that one step may write: token i of the batch goes to (pages[i], slots[i]).

    Tokens of padding rows have no slot: the padding page stays as it is.
    """

    def __init__(
        self, views: PoolViews, pages: Sequence[int], slots: Sequence[int], device: torch.device
    ) -> None:
        invariant(len(pages) == len(slots), "each token has one page and one slot")
        invariant(
            all(0 <= page < len(views.k[0]) for page in pages),
            "a block table names a page outside the pool",
        )
        self._views = views
        kept = [index for index, page in enumerate(pages) if page != views.padding_page]
        self._pages = torch.tensor([pages[index] for index in kept], dtype=torch.int64, device=device)
        self._slots = torch.tensor([slots[index] for index in kept], dtype=torch.int64, device=device)
        self._kept = None if len(kept) == len(pages) else torch.tensor(kept, dtype=torch.int64, device=device)

    def store(self, layer: int, call: AttentionCall) -> None:
        """Write this layer's keys and values of the step's tokens."""
        for view, numbers in ((self._views.k[layer], call.key), (self._views.v[layer], call.value)):
            by_token = numbers[0].transpose(0, 1)
            if self._kept is not None:
                by_token = by_token.index_select(0, self._kept)
            view.index_put_((self._pages, self._slots), by_token)


def gather(view: torch.Tensor, index: torch.Tensor, scratch: Scratch, name: str) -> torch.Tensor:
    """Copy the pages `index` [rows, n] of a region side by side → [rows, n x page_tokens, kv_heads, dim]."""
    rows, width = index.shape
    _, page_tokens, heads, dim = view.shape
    out = scratch.lend(name, (rows * width, page_tokens, heads, dim), view)
    torch.index_select(view, 0, index.view(-1), out=out)
    return out.view(rows, width * page_tokens, heads, dim)


def additive(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Turn True (attend) and False into 0 and -inf."""
    bias = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
    return bias.masked_fill_(visible.logical_not(), -torch.inf)
