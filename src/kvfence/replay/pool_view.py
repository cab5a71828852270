"""A look into a living decode pool from outside: its seals, and who wrote the bytes of each slot.

The pool is a memory file without a name; the kernel lets the user who runs the deployment open it again
through /proc, and this opens it for reading alone. Nothing is asked of the node, so nothing that is broken
in it can colour what is seen.

Rules it keeps:
- Whose a page is, is read from its trailer. Whose the bytes of a slot are, is found by comparing them with
  what stood in the pool before: bytes that somebody else had written are still theirs, wherever they are.
- It never writes, and lets go of the pool when it is closed.

It reads while nobody writes: before a request and after its end.
"""

import json
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from kvfence.kv import SEAL_DTYPE, LayerShape, PageLayout, SealKind, digest_page
from kvfence.protocol.errors import InternalError, invariant
from kvfence.protocol.words import LeaseId

DECODE = "decode-0"
_POOL_LINK = "/memfd:kvfence-pool"


def layout_of(model_config: Mapping[str, Any], *, page_tokens: int, dtype: str) -> PageLayout:
    """Return the layout of a dense model with equal layers, by its config's names.

    The nodes probe their model instead; whoever uses this compares the page's size with theirs.
    """
    heads = int(model_config["num_attention_heads"])
    shape = LayerShape(
        kv_heads=int(model_config.get("num_key_value_heads") or heads),
        k_dim=int(model_config.get("head_dim") or model_config["hidden_size"] // heads),
        v_dim=int(model_config.get("head_dim") or model_config["hidden_size"] // heads),
    )
    return PageLayout((shape,) * int(model_config["num_hidden_layers"]), page_tokens, dtype)


@dataclass(frozen=True)
class Snapshot:
    """The pool at one moment: a copy of its trailers, and a digest of the bytes of each slot.

    `digests[page][slot]` is None where every byte is zero: nobody wrote there.
    """

    trailers: npt.NDArray[Any]
    digests: tuple[tuple[bytes | None, ...], ...]

    @property
    def leases(self) -> frozenset[LeaseId]:
        """Every lease that a trailer names."""
        named = self.trailers[self.trailers["kind"] != SealKind.BLANK]
        return frozenset(
            LeaseId(int(incarnation), int(sequence))
            for incarnation, sequence in zip(named["incarnation"], named["sequence"], strict=True)
        )

    @property
    def written(self) -> frozenset[bytes]:
        """Digests of all slots in which something stands."""
        return frozenset(digest for page in self.digests for digest in page if digest is not None)


class PoolView:
    """One decode node's pool, mapped for reading. Use as a context."""

    def __init__(self, fd: int, layout: PageLayout) -> None:
        """Map `fd`, which is the caller's. Raises InternalError when pages of that layout do not fill it."""
        size_bytes = os.fstat(fd).st_size
        if size_bytes % layout.page_bytes:
            raise InternalError(
                f"a pool of {size_bytes:,} bytes has no whole number of pages of {layout.page_bytes:,}: the "
                "replay's idea of the model's layout is wrong"
            )
        self.layout = layout
        self._mapping = mmap.mmap(fd, size_bytes, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        buffer = np.frombuffer(self._mapping, np.uint8)
        # The last page is the padding page, which is never leased.
        self._rows = buffer.reshape(-1, layout.page_bytes)[:-1]

    @classmethod
    def of_process(cls, pid: int, layout: PageLayout) -> Self:
        """Open the pool that a decode process holds. Raises InternalError when it cannot be found or read."""
        folder = Path(f"/proc/{pid}/fd")
        try:
            found = [link for link in folder.iterdir() if _target(link).startswith(_POOL_LINK)]
            invariant(found, f"process {pid} holds no pool")
            fd = os.open(found[0], os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InternalError(
                f"the pool of process {pid} cannot be looked into ({error.strerror}): the replay needs /proc "
                "and a machine that lets a user read the memory of that user's own processes"
            ) from error
        try:
            return cls(fd, layout)
        finally:
            os.close(fd)

    @classmethod
    def of_deployment(cls, run_dir: Path) -> Self:
        """Open the decode pool of a deployment, by what its run directory says of the node."""
        settings = json.loads((run_dir / f"{DECODE}.json").read_text())
        config = json.loads((Path(settings["model_dir"]) / "config.json").read_text())
        layout = layout_of(config, page_tokens=settings["page_tokens"], dtype=settings["dtype"])
        return cls.of_process(json.loads((run_dir / f"{DECODE}.process").read_text())["pid"], layout)

    @property
    def pages(self) -> int:
        """Pages that can be leased, spare ones included."""
        return len(self._rows)

    def trailers(self) -> npt.NDArray[Any]:
        """Return a copy of the seals, one a page (SEAL_DTYPE)."""
        raw = self._rows[:, self.layout.payload_bytes :].copy()
        return raw.view(SEAL_DTYPE).reshape(-1)

    def snapshot(self) -> Snapshot:
        """Copy the seals and digest every slot."""
        slots = self._slots()
        written: npt.NDArray[np.bool_] = slots.max(axis=2) > 0
        digests = tuple(
            tuple(
                digest_page(slots[page, slot]) if written[page, slot] else None
                for slot in range(slots.shape[1])
            )
            for page in range(len(slots))
        )
        return Snapshot(self.trailers(), digests)

    def _slots(self) -> npt.NDArray[np.uint8]:
        """Copy all slots, each as one run of bytes over all regions: [page, slot, bytes]."""
        tokens = self.layout.page_tokens
        pieces = [
            self._rows[:, region.offset : region.offset + tokens * region.slot_bytes].reshape(
                self.pages, tokens, region.slot_bytes
            )
            for region in self.layout.regions
        ]
        return np.concatenate(pieces, axis=2)

    def close(self) -> None:
        """Let go of the pool."""
        del self._rows
        self._mapping.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _target(link: Path) -> str:
    """Return what a descriptor of another process stands for; nothing if it was closed meanwhile."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""
