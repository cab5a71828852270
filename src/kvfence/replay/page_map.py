"""The page map: for each slot of a request's block table, whose bytes stand there, and whether it was read.

It is made of two snapshots of the same pool, before the request and after it (`pool_view.py`), or of the
scaled-down model (`scaled.py`); `origin` says which, and every drawing repeats it.

Rules it keeps:
- A slot is the reader's own where the page's seal says that the reader's writer wrote it, or decode appended
  it. It is another tenant's where its bytes are ones that stood in the pool before the request came.
- Read are the slots that the request's steps attended over: none when it was refused.
"""

from dataclasses import dataclass
from enum import Enum, unique

from kvfence.kv import SealKind
from kvfence.protocol.words import LeaseId
from kvfence.replay.pool_view import Snapshot
from kvfence.replay.scaled import ScaledLeak


@unique
class Owner(Enum):
    """Whose bytes stand in a slot."""

    READER = "own"
    OTHER = "another tenant's"
    NOBODY = "empty"


@unique
class Origin(Enum):
    """Where a map comes from."""

    POOL = "read from the decode node's pool, while it ran"
    MODEL = "computed by the page accounting"


@dataclass(frozen=True, slots=True)
class MapPage:
    """One page of the block table, in its place."""

    page: int
    slots: tuple[Owner, ...]


@dataclass(frozen=True, slots=True)
class PageMap:
    """A block table, page by page, of which the first `read_slots` slots were read."""

    pages: tuple[MapPage, ...]
    read_slots: int
    origin: Origin

    @property
    def slots(self) -> tuple[Owner, ...]:
        """Every slot in the order of positions."""
        return tuple(owner for page in self.pages for owner in page.slots)

    def count(self, owner: Owner) -> int:
        """Count the slots of an owner that were read; of a request that was refused, all that it reserved."""
        slots = self.slots
        return slots[: self.read_slots or len(slots)].count(owner)

    @property
    def shown_slots(self) -> int:
        """How many slots `count` counts over."""
        return self.read_slots or len(self.slots)


def map_of_model(leak: ScaledLeak) -> PageMap:
    """Draw the scaled-down leak as a map."""
    owners = [Owner.READER if written.tenant == "B" else Owner.OTHER for written in leak.read]
    pages = tuple(
        MapPage(start // leak.page_tokens, tuple(owners[start : start + leak.page_tokens]))
        for start in range(0, len(owners), leak.page_tokens)
    )
    return PageMap(pages, len(owners), Origin.MODEL)


def map_of_pool(before: Snapshot, after: Snapshot, *, prompt_tokens: int, read_slots: int) -> PageMap | None:
    """Draw the block table of the newest lease that came between the two; None when no trailer names one."""
    new = after.leases - before.leases
    if not new:
        return None
    lease = max(new)
    foreign = before.written
    pages = []
    for ordinal, page in sorted(_block_table(after, lease).items()):
        first = ordinal * len(after.digests[page])
        own = _own_slots(after, page, first, prompt_tokens)
        owners = tuple(
            _owner(digest, is_own=slot in own, foreign=foreign)
            for slot, digest in enumerate(after.digests[page])
        )
        pages.append(MapPage(page, owners))
    return PageMap(tuple(pages), read_slots, Origin.POOL)


def _block_table(snapshot: Snapshot, lease: LeaseId) -> dict[int, int]:
    """Return page by ordinal; decode's copy of a partly filled page stands in for the original."""
    trailers = snapshot.trailers
    mine = (
        (trailers["kind"] != SealKind.BLANK)
        & (trailers["incarnation"] == lease.incarnation)
        & (trailers["sequence"] == lease.sequence)
    )
    table: dict[int, int] = {}
    for page in mine.nonzero()[0].tolist():
        ordinal = int(trailers["ordinal"][page])
        if ordinal not in table or trailers["kind"][page] == SealKind.OPEN:
            table[ordinal] = page
    return table


def _own_slots(snapshot: Snapshot, page: int, first_position: int, prompt_tokens: int) -> range:
    """Return the slots of a page that the reader wrote: those that are sealed, those past its prompt."""
    trailer = snapshot.trailers[page]
    slots = len(snapshot.digests[page])
    if trailer["kind"] == SealKind.SEALED:
        return range(int(trailer["valid_tokens"]))
    if trailer["kind"] == SealKind.OPEN:
        return range(max(0, min(slots, prompt_tokens - first_position)), slots)
    return range(0)


def _owner(digest: bytes | None, *, is_own: bool, foreign: frozenset[bytes]) -> Owner:
    if digest is None:
        return Owner.NOBODY
    return Owner.OTHER if digest in foreign and not is_own else Owner.READER
