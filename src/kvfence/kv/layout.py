"""Where everything lies inside a page: a region of K and a region of V for each layer, then the seal.

Rules: a page is one contiguous run of bytes; each region starts on a cache line; the seal is the last
64 bytes, so that it is written last. A page is the same on both ends or the ends do not speak: they
compare `fingerprint()`.

It knows shapes and bytes, not tensors and not models.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kvfence.protocol.errors import OperatorError, invariant

SEAL_BYTES = 64  # one cache line; `seal.SEAL_DTYPE` says what is in it
ALIGNMENT_BYTES = 64
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
PAGE_TOKENS_MAX = 4096


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What one layer keeps for one token: `kv_heads` rows of `k_dim` and of `v_dim` numbers."""

    kv_heads: int
    k_dim: int
    v_dim: int


@dataclass(frozen=True, slots=True)
class Region:
    """K or V of one layer inside a page: `page_tokens` slots of `slot_bytes`, from byte `offset` on."""

    offset: int
    slot_bytes: int
    region_bytes: int


@dataclass(frozen=True)
class PageLayout:
    """A page of `page_tokens` slots for `layers`, in `dtype` (float32, bfloat16 or float16).

    Raises OperatorError where no page can be built from the facts.
    """

    layers: tuple[LayerShape, ...]
    page_tokens: int
    dtype: str

    def __post_init__(self) -> None:
        if self.dtype not in ITEM_BYTES:
            raise OperatorError(
                f"the KV pool cannot hold numbers of type {self.dtype!r}: "
                f"choose one of {', '.join(ITEM_BYTES)}"
            )
        if not 1 <= self.page_tokens <= PAGE_TOKENS_MAX:
            raise OperatorError(
                f"a page of {self.page_tokens} tokens is not possible: "
                f"choose 1 to {PAGE_TOKENS_MAX} (usual: 16)"
            )
        if not self.layers:
            raise OperatorError("a page without layers has nothing to hold: the model has no attention layer")
        if any(min(shape.kv_heads, shape.k_dim, shape.v_dim) < 1 for shape in self.layers):
            raise OperatorError(
                f"every layer needs at least one KV head and one dimension: got {self.layers}"
            )

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return ITEM_BYTES[self.dtype]

    @cached_property
    def regions(self) -> tuple[Region, ...]:
        """K of layer 0, V of layer 0, K of layer 1, …, in the order in which they lie in the page."""
        return tuple(self._lay_out())

    def _lay_out(self) -> Iterator[Region]:
        offset = 0
        for shape in self.layers:
            for dim in (shape.k_dim, shape.v_dim):
                slot_bytes = shape.kv_heads * dim * self.itemsize
                region_bytes = _aligned(slot_bytes * self.page_tokens)
                yield Region(offset=offset, slot_bytes=slot_bytes, region_bytes=region_bytes)
                offset += region_bytes

    def k_offset(self, layer: int) -> int:
        """Byte within the page at which K of `layer` starts: [page_tokens, kv_heads, k_dim] in C order."""
        invariant(0 <= layer < len(self.layers), f"layer {layer} is not one of {len(self.layers)}")
        return self.regions[2 * layer].offset

    def v_offset(self, layer: int) -> int:
        """Byte within the page at which V of `layer` starts: [page_tokens, kv_heads, v_dim] in C order."""
        invariant(0 <= layer < len(self.layers), f"layer {layer} is not one of {len(self.layers)}")
        return self.regions[2 * layer + 1].offset

    @cached_property
    def payload_bytes(self) -> int:
        """Bytes of a page without its seal; a multiple of 64."""
        return sum(region.region_bytes for region in self.regions)

    @cached_property
    def page_bytes(self) -> int:
        """Bytes of a page with its seal; a multiple of 64."""
        return self.payload_bytes + SEAL_BYTES

    @cached_property
    def token_bytes(self) -> int:
        """Bytes of KV of one token, over all layers."""
        return sum(region.slot_bytes for region in self.regions)

    def pages_for(self, tokens: int) -> int:
        """Count of pages that hold `tokens`."""
        return -(-tokens // self.page_tokens)

    def fingerprint(self) -> bytes:
        """32 bytes that differ when any byte of a page would mean something else."""
        facts = ";".join(f"{shape.kv_heads},{shape.k_dim},{shape.v_dim}" for shape in self.layers)
        text = f"kvfence page 1|{self.dtype}|{self.page_tokens}|{SEAL_BYTES}|{ALIGNMENT_BYTES}|{facts}"
        return hashlib.sha256(text.encode()).digest()


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
