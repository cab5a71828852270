"""The router's records: one request with its current attempt, and one node's load."""

from dataclasses import dataclass, field

from kvfence.protocol.router_table import RouterState
from kvfence.protocol.words import AttemptId, Peer, Role, TimerKind


@dataclass(slots=True)
class RouterRequest:
    """Plain facts; `state` is the only field that says where the request stands.

    `decode` is the node on which the current attempt is alive, or was not yet said to have ended; None
    when nothing is left of it. `prefill` is its writer until the first token came. Token ids are not
    kept here: the node adds them.
    """

    request: int
    incarnation: int
    prompt_tokens: int
    max_tokens: int
    state: RouterState
    number: int = 0  # of the latest attempt
    delivered_tokens: int = 0
    lost_tokens: int = 0  # tokens that arrived where an earlier one was missing
    retries: int = 0
    is_overdue: bool = False  # the queue deadline passed while an attempt was alive
    decode: Peer | None = None
    prefill: Peer | None = None
    pages: int = 0  # of the current attempt, on each of the two nodes
    timers: dict[TimerKind, int] = field(default_factory=dict)

    @property
    def attempt(self) -> AttemptId:
        """Key of the latest attempt."""
        return AttemptId(self.incarnation, self.request, self.number)

    @property
    def tokens(self) -> int:
        """Prompt of the next attempt: the client's, and what was delivered already."""
        return self.prompt_tokens + self.delivered_tokens

    @property
    def needed_tokens(self) -> int:
        """What the request may need at most, the same for every attempt."""
        return self.prompt_tokens + self.max_tokens


@dataclass(slots=True)
class NodeLoad:
    """What the router knows of a living prefill or decode node."""

    peer: Peer
    role: Role
    pool_tokens: int
    is_draining: bool
    is_full: bool = False  # it said so; until its next hello, or the end of an attempt there
    pages: int = 0  # outstanding
