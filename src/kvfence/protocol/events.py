"""Facts that are fed to the cores. Frozen; named in the past tense or as what a peer said.

Each class says who receives it. `sender` is the authenticated Peer of a message.
"""

from dataclasses import dataclass

from kvfence.protocol.words import (
    AttemptId,
    End,
    IntegrityReason,
    LeaseId,
    Outcome,
    PageRef,
    Peer,
    Refusal,
    Role,
    Timer,
)


# ---------------------------------------------------------------- every role
@dataclass(frozen=True, slots=True)
class Hello:
    """A peer announced itself. The first of a newer incarnation starts the cut of the older one.

    `pool_tokens` is read from the allocated buffer (None for a router); `free_pages` is a hint.
    """

    sender: Peer
    role: Role
    pool_tokens: int | None = None
    free_pages: int | None = None
    draining: bool = False


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A peer was not heard for too long, or is known to be dead. No proof of quiet."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Cut:
    """Proof that the incarnation can no longer write here."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class CutUnknown:
    """A cut was tried and could not be proven: the pages stay."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Expired:
    """A timer fired. A stale generation is ignored."""

    timer: Timer
    generation: int


@dataclass(frozen=True, slots=True)
class DrainRequested:
    """The operator stops this node: refuse what is new, finish what is old."""


# ---------------------------------------------------------------- router
@dataclass(frozen=True, slots=True)
class Submitted:
    """A client's request, tokenised. `max_tokens` None means limit - prompt."""

    request: int
    prompt_tokens: int
    max_tokens: int | None


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The client of a request went away (or the front end wants no more of it)."""

    request: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """Decode leased pages for the attempt. To router. `pages` are the remote-written ones, in order."""

    sender: Peer
    attempt: AttemptId
    lease: LeaseId
    pages: tuple[PageRef, ...]


@dataclass(frozen=True, slots=True)
class ReserveRefused:
    """Decode will not take the attempt. To router."""

    sender: Peer
    attempt: AttemptId
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class TokenMade:
    """Decode produced a token at an absolute position. To router."""

    sender: Peer
    attempt: AttemptId
    position: int


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """Decode says that an attempt ended. To router; always after its last TokenMade."""

    sender: Peer
    attempt: AttemptId
    end: End


# ---------------------------------------------------------------- decode
@dataclass(frozen=True, slots=True)
class Reserve:
    """Router asks decode for pages. Idempotent on the attempt."""

    sender: Peer
    attempt: AttemptId
    writer: Peer
    tokens: int
    max_tokens: int
    token_hash: bytes


@dataclass(frozen=True, slots=True)
class Abort:
    """Router gave the attempt up. To decode and prefill; legal at any time, even before Reserve."""

    sender: Peer
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class Closed:
    """The writer's promise: every write for the lease has completed and none will ever be posted."""

    sender: Peer
    lease: LeaseId
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class SealsVerified:
    """Every page of the hand-over carries the lease's own, intact seal."""

    lease: LeaseId


@dataclass(frozen=True, slots=True)
class SealsRejected:
    """Verification failed. `poisoned` are pages with a foreign or torn seal (none for `unwritten`)."""

    lease: LeaseId
    reason: IntegrityReason
    poisoned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardRejected:
    """The step guard or the paranoid sweep took a running row out."""

    lease: LeaseId
    reason: IntegrityReason
    poisoned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PageWanted:
    """The row's next step needs one more page."""

    lease: LeaseId


@dataclass(frozen=True, slots=True)
class TailCopied:
    """The partly filled last page was copied into the lease's own tail page; the original is spare."""

    lease: LeaseId


@dataclass(frozen=True, slots=True)
class PageSealed:
    """The executor filled a page of a running row and sealed it (its digest is taken). To decode."""

    lease: LeaseId
    page: PageRef


@dataclass(frozen=True, slots=True)
class StepLaunched:
    """A forward pass that reads and writes the pages of these leases was launched. Decode and prefill."""

    step: int
    leases: tuple[LeaseId, ...]


@dataclass(frozen=True, slots=True)
class StepRetired:
    """That forward pass can touch no page any more. Decode and prefill."""

    step: int


@dataclass(frozen=True, slots=True)
class RowFinished:
    """The executor decided that generation is complete, or that it cannot go on."""

    lease: LeaseId
    end: End


# ---------------------------------------------------------------- prefill
@dataclass(frozen=True, slots=True)
class Prefill:
    """Router hands a reserved lease to the writer. `tokens` are the prompt's ids."""

    sender: Peer
    attempt: AttemptId
    decode: Peer
    lease: LeaseId
    pages: tuple[PageRef, ...]
    tokens: tuple[int, ...]
    domain: str


@dataclass(frozen=True, slots=True)
class ChunkComputed:
    """The executor computed and sealed the prompt up to `tokens_done`; the last chunk brings the token."""

    lease: LeaseId
    tokens_done: int
    first_token: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutorFailed:
    """The executor cannot compute this lease (an exception, a failed ownership check)."""

    lease: LeaseId
    detail: str


@dataclass(frozen=True, slots=True)
class WriteCompleted:
    """Positive completion of a batch: its bytes are in the target, nothing of it is in flight."""

    lease: LeaseId
    batch: int


@dataclass(frozen=True, slots=True)
class WriteFailed:
    """The transport gave a batch up.

    `quiet` is the transport's proof that nothing of it reads our pages or will land any more (a batch that
    was refused or stopped before it left). Without it, its bytes may still land or be read.
    """

    lease: LeaseId
    batch: int
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class ConnectionDestroyed:
    """The connection to that peer is gone locally: no outgoing write reads our pages any more."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A new connection to that peer stands, which proves that nothing posted on an earlier one will land."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class Close:
    """Decode asks the writer to close the lease. Repeated until answered."""

    sender: Peer
    lease: LeaseId


@dataclass(frozen=True, slots=True)
class LowestLive:
    """Decode's lowest sequence number not yet freed: below it a writer refuses and forgets."""

    sender: Peer
    sequence: int
