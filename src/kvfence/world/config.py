"""How large a world is: nodes, pools, pages, and the limits that its cores are given."""

from dataclasses import dataclass, field, replace
from enum import Enum, unique

from kvfence.protocol import DecodeConfig, PrefillConfig, RouterConfig


@unique
class Piece(Enum):
    """What of a one-sided write lands at once."""

    PAGE = "page"  # a page with its trailer
    HALF = "half"  # all slots, then the trailer
    SLOT = "slot"  # slot by slot, then the trailer


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldConfig:
    """Sizes are in pages and tokens. `decode_spare_pages` are beyond what admission counts on."""

    routers: int = 1
    prefills: int = 1
    decodes: int = 1
    page_tokens: int = 2
    prefill_pages: int = 4
    decode_pages: int = 4
    decode_spare_pages: int = 1
    chunk_tokens: int = 2
    rows_max: int = 4  # of one decode step
    piece: Piece = Piece.PAGE
    has_prefix_cache: bool = False
    router: RouterConfig = field(default_factory=lambda: RouterConfig(context_tokens=64, page_tokens=2))
    prefill: PrefillConfig = field(
        default_factory=lambda: PrefillConfig(page_bytes=1, page_tokens=2, batch_bytes=1)
    )
    decode: DecodeConfig = field(default_factory=lambda: DecodeConfig(page_tokens=2))


def world_config(
    *, context_tokens: int = 64, batch_pages: int = 1, base: WorldConfig | None = None
) -> WorldConfig:
    """The sizes of `base`, with cores that agree about its page size; batches have `batch_pages` pages."""
    base = WorldConfig() if base is None else base
    return replace(
        base,
        router=replace(base.router, context_tokens=context_tokens, page_tokens=base.page_tokens),
        prefill=replace(base.prefill, batch_bytes=batch_pages, page_tokens=base.page_tokens),
        decode=replace(base.decode, page_tokens=base.page_tokens),
    )
