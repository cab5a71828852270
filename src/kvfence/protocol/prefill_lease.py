"""The prefill node's record of one lease that it writes."""

from dataclasses import dataclass, field

from kvfence.protocol.prefill_table import PrefillState
from kvfence.protocol.words import AttemptId, LeaseId, Outcome, PageRef, Peer


@dataclass(slots=True)
class PrefillLease:
    """Plain facts; `state` is the only field that says where the lease stands.

    A batch is in one of three sets of numbers: `in_flight` (posted, not completed), `lost` (given up by
    the transport, its bytes may still be read and land), `unproven` (its connection was destroyed: it
    reads nothing here any more, but nobody can say that it will not land).
    """

    lease: LeaseId
    attempt: AttemptId
    router: Peer
    decode: Peer
    owner: int  # the sequence under which the ledger knows this lease's own pages
    tokens: tuple[int, ...]
    domain: str
    targets: tuple[PageRef, ...]
    pages: tuple[PageRef, ...]  # prefix pages first, then own pages
    prefix_pages: int  # how many of `pages` come from the prefix index
    pinned: tuple[int, ...]
    state: PrefillState
    computed_tokens: int
    sealed_pages: int
    early_pages: int = 0  # called sealed before they were: none, unless the decision to publish is wrong
    posted_pages: int = 0
    next_batch: int = 1
    in_flight: set[int] = field(default_factory=set)
    stopped: set[int] = field(default_factory=set)  # in flight, past their posting bound
    lost: set[int] = field(default_factory=set)
    unproven: set[int] = field(default_factory=set)
    steps: int = 0
    first_token: int | None = None
    published: frozenset[int] = frozenset()
    outcome: Outcome | None = None  # known from the end on
    was_said: bool = False

    @property
    def own_pages(self) -> tuple[PageRef, ...]:
        """The pages that this lease owns in this node's pool."""
        return self.pages[self.prefix_pages :]

    @property
    def private_pages(self) -> list[PageRef]:
        """The own pages that the prefix index did not take."""
        return [ref for ref in self.own_pages if ref.page not in self.published]
