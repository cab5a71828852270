"""The decode node's record of one lease."""

from dataclasses import dataclass, field

from kvfence.protocol.decode_table import DecodeState
from kvfence.protocol.words import AttemptId, End, LeaseId, Manifest, PageRef, Peer, TimerKind


@dataclass(slots=True)
class DecodeLease:
    """Plain facts; `state` is the only field that says where the lease stands.

    `steps` and `verifications` count what reads the pages now. `original` is the partly filled page that
    was copied, kept while the steps of `original_steps` may read it.
    """

    lease: LeaseId
    attempt: AttemptId
    router: Peer
    writer: Peer
    tokens: int
    token_hash: bytes
    pages: tuple[PageRef, ...]
    tail: PageRef
    state: DecodeState = DecodeState.ABSENT
    writer_is_quiet: bool = False
    steps: int = 0
    verifications: int = 0
    grown: list[PageRef] = field(default_factory=list)
    tail_is_owed: bool = False  # the executor has yet to copy the partial page
    original: PageRef | None = None
    original_steps: frozenset[int] = frozenset()
    poisoned: set[int] = field(default_factory=set)
    timers: dict[TimerKind, int] = field(default_factory=dict)
    closes_asked: int = 0
    manifest: Manifest | None = None
    end: End | None = None

    def held(self) -> list[PageRef]:
        """Return every page that the lease still owns, poisoned ones left out."""
        pages = [*self.pages, self.tail, *self.grown]
        if self.original is not None:
            pages.append(self.original)
        if self.poisoned:
            pages = [ref for ref in pages if ref.page not in self.poisoned]
        return pages

    @property
    def held_pages(self) -> int:
        """How many pages the lease still owns, poisoned ones left out. O(1)."""
        originals = 0 if self.original is None else 1
        return len(self.pages) + 1 + len(self.grown) + originals - len(self.poisoned)

    def holds_open(self, ref: PageRef) -> bool:
        """Tell whether `ref` is a page that this node appends to."""
        return ref == self.tail or ref in self.grown
