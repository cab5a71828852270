"""KV pages as bytes: the pool, the seal and what checks it, and the prefix index.

The names are loaded when they are first used: the prefix index and the fence level need no numpy, and
the simulator and the command line run where none is installed.
"""

from typing import TYPE_CHECKING

from kvfence.lazy import on_first_use

if TYPE_CHECKING:
    from kvfence.kv.fence_level import FenceLevel
    from kvfence.kv.guard import GuardFinding, OwnerTable, StepGuard
    from kvfence.kv.handover import HandoverResult, verify_handover
    from kvfence.kv.layout import SEAL_BYTES, LayerShape, PageLayout, Region
    from kvfence.kv.memory import available_memory_bytes
    from kvfence.kv.own_pages import copy_tail, open_page, seal_own_page
    from kvfence.kv.pool import Pool
    from kvfence.kv.prefix import KvIdentity, PrefixIndex
    from kvfence.kv.seal import (
        SEAL_DTYPE,
        SealKind,
        digest_page,
        lease_key,
        make_tag,
        make_trailer,
        make_trailers,
        page_indices,
        stamp_unwritten,
    )
    from kvfence.kv.sealer import PageSealer
    from kvfence.kv.sweep import PageSweep, scrub_pages

__all__ = [
    "SEAL_BYTES",
    "SEAL_DTYPE",
    "FenceLevel",
    "GuardFinding",
    "HandoverResult",
    "KvIdentity",
    "LayerShape",
    "OwnerTable",
    "PageLayout",
    "PageSealer",
    "PageSweep",
    "Pool",
    "PrefixIndex",
    "Region",
    "SealKind",
    "StepGuard",
    "available_memory_bytes",
    "copy_tail",
    "digest_page",
    "lease_key",
    "make_tag",
    "make_trailer",
    "make_trailers",
    "open_page",
    "page_indices",
    "scrub_pages",
    "seal_own_page",
    "stamp_unwritten",
    "verify_handover",
]

_HOMES = {
    "FenceLevel": "fence_level",
    "GuardFinding": "guard",
    "HandoverResult": "handover",
    "KvIdentity": "prefix",
    "LayerShape": "layout",
    "OwnerTable": "guard",
    "PageLayout": "layout",
    "PageSealer": "sealer",
    "PageSweep": "sweep",
    "Pool": "pool",
    "PrefixIndex": "prefix",
    "Region": "layout",
    "SEAL_BYTES": "layout",
    "SEAL_DTYPE": "seal",
    "SealKind": "seal",
    "StepGuard": "guard",
    "available_memory_bytes": "memory",
    "copy_tail": "own_pages",
    "digest_page": "seal",
    "lease_key": "seal",
    "make_tag": "seal",
    "make_trailer": "seal",
    "make_trailers": "seal",
    "open_page": "own_pages",
    "page_indices": "seal",
    "scrub_pages": "sweep",
    "seal_own_page": "own_pages",
    "stamp_unwritten": "seal",
    "verify_handover": "handover",
}

__getattr__ = on_first_use(__name__, _HOMES)
