"""Imperatives that the cores give. Whoever drives a core carries them out in order.

`Send…` go to the named peer over the control plane; the rest is for the driving node itself.
"""

from dataclasses import dataclass

from kvfence.protocol.words import (
    AttemptId,
    End,
    LeaseId,
    Manifest,
    Outcome,
    PageRef,
    Peer,
    Refusal,
    Timer,
)


# ---------------------------------------------------------------- every role
@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire `Expired(timer, generation)` after `after_ms`. Timers are never cancelled, only outdated."""

    timer: Timer
    generation: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class PagesFreed:
    """These pages became FREE (scrub them where the level asks for it, before the next lease)."""

    pages: tuple[int, ...]


# ---------------------------------------------------------------- router
@dataclass(frozen=True, slots=True)
class SendReserve:
    """Ask `decode` for pages; the node adds the sampling parameters.

    `tokens` counts the prompt and what was already delivered; `max_tokens` is what may still be made.
    """

    decode: Peer
    attempt: AttemptId
    writer: Peer
    tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class SendPrefill:
    """Hand the reserved lease to `prefill`; the node adds token ids, domain, sampling and the tag key."""

    prefill: Peer
    attempt: AttemptId
    decode: Peer
    lease: LeaseId
    pages: tuple[PageRef, ...]


@dataclass(frozen=True, slots=True)
class SendAbort:
    """Tell a node that the attempt is given up."""

    peer: Peer
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class DeliverToken:
    """Pass the token that just arrived (its event is being stepped) to the client."""

    request: int
    position: int


@dataclass(frozen=True, slots=True)
class FinishRequest:
    """The request is over; tell the client. Exactly one for each Submitted."""

    request: int
    end: End


# ---------------------------------------------------------------- decode
@dataclass(frozen=True, slots=True)
class StampPages:
    """Write the "reserved, unwritten" stamp into each page's trailer, before SendReserved is sent."""

    lease: LeaseId
    pages: tuple[PageRef, ...]


@dataclass(frozen=True, slots=True)
class SendReserved:
    """Tell the router which pages were leased; the node adds the lease's tag key."""

    router: Peer
    attempt: AttemptId
    lease: LeaseId
    pages: tuple[PageRef, ...]


@dataclass(frozen=True, slots=True)
class SendReserveRefused:
    """Tell the router that the attempt will not be taken."""

    router: Peer
    attempt: AttemptId
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class VerifySeals:
    """Verify the seal of every page; answer SealsVerified or SealsRejected."""

    lease: LeaseId
    manifest: Manifest
    pages: tuple[PageRef, ...]


@dataclass(frozen=True, slots=True)
class StartRow:
    """The hand-over is good: copy a partial last page into `tail`, send the first token, decode.

    `pages` were written by the writer, `tail` by nobody but this node. When `manifest.tokens` fills its
    pages exactly, `tail` is the next, empty page.
    """

    lease: LeaseId
    attempt: AttemptId
    manifest: Manifest
    pages: tuple[PageRef, ...]
    tail: PageRef


@dataclass(frozen=True, slots=True)
class GrantPage:
    """One more OPEN page at the end of the row's block table."""

    lease: LeaseId
    page: PageRef


@dataclass(frozen=True, slots=True)
class StopRow:
    """Take the row out of the schedule; its pages must not be touched by any later step."""

    lease: LeaseId


@dataclass(frozen=True, slots=True)
class SendClose:
    """Ask the writer to close."""

    writer: Peer
    lease: LeaseId


@dataclass(frozen=True, slots=True)
class SendLowestLive:
    """Tell a writer the lowest sequence number not yet freed."""

    writer: Peer
    sequence: int


@dataclass(frozen=True, slots=True)
class SendEnded:
    """Tell the router that the attempt ended (after its last token)."""

    router: Peer
    attempt: AttemptId
    end: End


@dataclass(frozen=True, slots=True)
class AskCut:
    """Make sure that this incarnation can no longer write here; answer Cut or CutUnknown."""

    peer: Peer


# ---------------------------------------------------------------- prefill
@dataclass(frozen=True, slots=True)
class StartPrefill:
    """Compute the prompt into `pages` (this node's own), from `cached_tokens` on.

    The first `cached_tokens` // page_tokens pages are pinned prefix pages; the others are owned in the
    ledger by `owner`, the sequence under which this node leased them.
    """

    lease: LeaseId
    attempt: AttemptId
    tokens: tuple[int, ...]
    pages: tuple[PageRef, ...]
    cached_tokens: int
    owner: int


@dataclass(frozen=True, slots=True)
class StopPrefill:
    """Compute nothing more for the lease."""

    lease: LeaseId


@dataclass(frozen=True, slots=True)
class PostBatch:
    """Write source pages over the target's pages: (own page, target page), ordinals from `first_ordinal`."""

    lease: LeaseId
    batch: int
    decode: Peer
    first_ordinal: int
    sources: tuple[PageRef, ...]
    targets: tuple[PageRef, ...]


@dataclass(frozen=True, slots=True)
class StopPosting:
    """The batch's posting bound passed: post no further write of it; what was posted may complete."""

    lease: LeaseId
    batch: int


@dataclass(frozen=True, slots=True)
class SendClosed:
    """Say Closed to decode, after the bytes (each transport states how it orders them)."""

    decode: Peer
    lease: LeaseId
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class DestroyConnection:
    """Tear the connection to that peer down; answer ConnectionDestroyed when nothing reads our pages."""

    peer: Peer
