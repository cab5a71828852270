"""The nouns of the protocol: who, which lease, which page, what was claimed, why something ended.

All are immutable and hashable, so that a model checker can put them in sets. No sentinel values:
what may be missing is None.
"""

from dataclasses import dataclass
from enum import Enum, unique


@unique
class Role(Enum):
    """What a process does in the deployment."""

    ROUTER = "router"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True, order=True)
class Peer:
    """One incarnation of one node. A restarted node is another Peer with the same name."""

    node: str
    incarnation: int


@dataclass(frozen=True, slots=True, order=True)
class LeaseId:
    """Name of a lease: the decode incarnation that granted it and its sequence number there (from 1)."""

    incarnation: int
    sequence: int


@dataclass(frozen=True, slots=True, order=True)
class AttemptId:
    """One attempt of one request: the key of everything that a request owns (number counts from 1)."""

    incarnation: int
    request: int
    number: int


@dataclass(frozen=True, slots=True, order=True)
class PageRef:
    """A page under one epoch. A page number alone never names content."""

    page: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a writer claims when it closes a lease as done.

    `pages` says that ordinals 0 … pages-1 were written, each once. `token_hash` is the SHA-256 of the
    prompt's token ids (`hash_tokens`). `first_token` was sampled at `first_position` (= tokens).
    """

    lease: LeaseId
    writer: Peer
    tokens: int
    pages: int
    token_hash: bytes
    first_token: int
    first_position: int


@unique
class RefusalCode(Enum):
    """Why a node will not take a request (or not now)."""

    CONTEXT_LENGTH = "context_length_exceeded"  # can never fit: needed > limit
    BUSY = "busy"  # does not fit now; worth another try
    QUARANTINE = "quarantine"  # too large a share of the pool waits for writers
    DRAINING = "draining"  # the node is being stopped
    STALE = "stale"  # the lease, attempt or incarnation is no longer alive
    UNAVAILABLE = "unavailable"  # no node of a needed role is known
    DEADLINE = "deadline"  # waited in the queue too long


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal with its numbers, in tokens, where they make sense."""

    code: RefusalCode
    needed_tokens: int | None = None
    limit_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a lease: everything was written."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Refused:
    """Outcome of a lease: the writer would not start."""

    refusal: Refusal


@unique
class Failure(Enum):
    """Why a writer gave a lease up after it was accepted."""

    ABORTED = "aborted"
    TRANSFER = "transfer"
    EXECUTOR = "executor"
    PEER_LOST = "peer_lost"
    ILLEGAL = "illegal"


@dataclass(frozen=True, slots=True)
class Failed:
    """Outcome of a lease: given up. Every write that was posted has completed or can never land."""

    failure: Failure


Outcome = Done | Refused | Failed


@unique
class EndReason(Enum):
    """Why an attempt ended, as decode or the router states it (law 11: always one of these)."""

    STOP = "stop"  # the model's end token or a stop token
    LENGTH = "length"  # max_tokens reached
    REFUSED = "refused"
    CLIENT_GONE = "client_gone"
    DEADLINE = "deadline"
    INTEGRITY = "integrity"  # manifest, seal or guard spoke; `detail` says which
    TRANSFER = "transfer"
    PEER_LOST = "peer_lost"
    PREEMPTED = "preempted"  # to be recomputed as a new attempt
    EXECUTOR = "executor"
    ILLEGAL = "illegal"  # an event without a row: failed closed


@unique
class IntegrityReason(Enum):
    """Which layer of the fence spoke, and what it saw."""

    MANIFEST_TOKENS = "manifest_tokens"
    MANIFEST_PAGES = "manifest_pages"
    MANIFEST_HASH = "manifest_hash"
    MANIFEST_WRITER = "manifest_writer"
    MANIFEST_POSITION = "manifest_position"
    SEAL_UNWRITTEN = "seal_unwritten"  # the decode's own "reserved, unwritten" stamp still stands
    SEAL_FOREIGN = "seal_foreign"  # another lease, epoch or ordinal: the page is poisoned
    SEAL_TORN = "seal_torn"  # digest or tag does not verify: the page is poisoned
    GUARD_OWNER = "guard_owner"  # block table and owner record differ
    GUARD_SEAL = "guard_seal"  # a trailer changed under a running row
    SWEEP_DIGEST = "sweep_digest"  # paranoid re-digest differs


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt.

    `next_position` is the position after its last token, where the executor knows it: by it the router
    sees that no token was lost on the way.
    """

    reason: EndReason
    integrity: IntegrityReason | None = None
    refusal: Refusal | None = None
    detail: str = ""
    next_position: int | None = None


@unique
class TimerKind(Enum):
    """What a timer is for."""

    REQUEST = "request"  # router: the request's overall deadline
    QUEUE = "queue"  # router: waiting for room
    LEASE = "lease"  # decode: the writer has not closed
    CLOSE_RETRY = "close_retry"  # decode: ask the writer again
    GROWTH = "growth"  # decode: a row waits for a page
    BATCH = "batch"  # prefill: posting bound of a batch


@dataclass(frozen=True, slots=True)
class Timer:
    """Name of a timer. Setting it again makes a new generation; an older generation is ignored."""

    kind: TimerKind
    key: int | LeaseId | tuple[LeaseId, int]
