"""What the processes around the cores keep: rows, prompts, forward passes, one-sided writes, links.

All are frozen, so that a world is forked by copying dictionaries.
"""

from dataclasses import dataclass, replace
from enum import Enum, unique

from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer
from kvfence.world.memory import Seal, Slot


@dataclass(frozen=True, slots=True)
class Row:
    """A row on decode. `position` is that of its latest token, whose KV is not written yet."""

    attempt: AttemptId
    router: Peer
    table: tuple[PageRef, ...]
    received_pages: int  # the first pages of the table, which the writer wrote
    position: int

    def advanced(self) -> "Row":
        """The row one token later."""
        return replace(self, position=self.position + 1)

    def grown(self, page: PageRef) -> "Row":
        """The row with one more page."""
        return replace(self, table=(*self.table, page))


@dataclass(frozen=True, slots=True)
class Job:
    """A prompt on prefill. `owner` names its own pages in the ledger there."""

    request: int
    tokens: int
    table: tuple[PageRef, ...]
    owner: int
    prefix_pages: int
    computed: int

    def computed_to(self, tokens: int) -> "Job":
        """The prompt after one more chunk."""
        return replace(self, computed=tokens)


@dataclass(frozen=True, slots=True)
class Pass:
    """One row, or one chunk, of a forward pass that was launched: what it reads and where it writes."""

    lease: LeaseId
    request: int
    table: tuple[PageRef, ...]
    start: int  # the first position that it writes; it reads all before it
    end: int
    owner: LeaseId | int


@unique
class Link(Enum):
    """A connection for pages from a prefill to a decode node."""

    UP = "up"
    FALLING = "falling"  # being destroyed locally
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Write:
    """A batch of one-sided page writes: the next piece to land is slot `part` of page `at`.

    An orphan has nobody left who hears of it; its `buffered` pages are bytes that left their source.
    """

    decode: Peer
    request: int
    sources: tuple[PageRef, ...]
    targets: tuple[PageRef, ...]
    trailers: tuple[Seal, ...]
    at: int = 0
    part: int = 0
    is_stopped: bool = False
    is_orphan: bool = False
    buffered: tuple[tuple[Slot | None, ...], ...] | None = None

    @property
    def has_landed(self) -> bool:
        """Whether every page is in the target."""
        return self.at == len(self.targets)

    @property
    def halts(self) -> bool:
        """Whether it was stopped and stands between two pages."""
        return self.is_stopped and self.part == 0 and not self.has_landed
