"""What a transport is: the one interface through which pages cross from a prefill to a decode node.

    decode:   receiver = transport.listen(pool=…, me=…, …)          its address travels in the control plane
    prefill:  writer = transport.connect(address=…, target=…, …)    one connection a writer incarnation
              writer.post(batch) … writer.poll() -> [BatchWritten | BatchLost, …]
    decode:   receiver.cut(peer) -> PROVEN | PENDING | UNKNOWN

Rules that every implementation keeps (`tests/transport/conformance.py` holds it to them):

- A write is one source page's payload followed by its staged trailer, over one whole target page: payload
  first, trailer last. The target's processor takes no decision about it.
- `BatchWritten` is positive: every byte of the batch is in the target's memory, and nothing of it is in
  flight. Whoever says `Closed` after it has ordered the bytes before the message.
- Nothing is ever re-posted. What failed is said once, with whether anything of it may still land (`quiet`).
- A page that is out of range, on either side, is refused before anything of its batch is written.
- Time proves nothing. Only `BatchWritten`, `BatchLost(quiet=True)`, a proven cut, and a completed reconnect
  of the same incarnation speak about the future.
- A writer is admitted once it has proven the deployment's secret, named the decode incarnation that it
  means, and is of an incarnation not older than any seen of its node, and not cut.

What it does not do: it knows no lease states and no ledger, decides nothing about pages, sends no control
message, and kills nobody. The launcher kills; the transport says what has been proven.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Protocol

from kvfence.kv.layout import SEAL_BYTES
from kvfence.kv.pool import Pool
from kvfence.protocol.errors import PeerError, invariant
from kvfence.protocol.words import LeaseId, PageRef, Peer

TRAILER_BYTES = SEAL_BYTES
SECRET_BYTES_MIN = 16
BATCHES_QUEUED_MAX = 1024  # a writer's queue; a post beyond it is answered BatchLost(QUEUE_FULL)
WRITERS_MAX = 64  # connections that one receiver serves at a time

Wake = Callable[[], None]


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """Pages to write for one lease, in this order. The batch is immutable and owns its trailers.

    `sources` are pages of the writer's own pool, `targets` pages of the decode pool, one for one, and
    `trailers` holds 64 bytes for each: the seal that is to stand in the target. The source pages must stay
    unchanged until the batch has completed or `PageWriter.destroy` has answered True.
    """

    lease: LeaseId
    batch: int
    sources: tuple[int, ...]
    targets: tuple[PageRef, ...]
    trailers: bytes

    def __post_init__(self) -> None:
        """One source, one target, one trailer a page; at least one page."""
        invariant(self.sources, "a batch writes at least one page")
        invariant(len(self.sources) == len(self.targets), "a batch has one target for each source page")
        invariant(len(self.trailers) == TRAILER_BYTES * len(self.sources), "a batch has one trailer a page")

    def trailer(self, index: int) -> memoryview:
        """The staged trailer of the page at `index`; a view that lives as long as the batch."""
        return memoryview(self.trailers)[index * TRAILER_BYTES : (index + 1) * TRAILER_BYTES]


@dataclass(frozen=True, slots=True)
class BatchWritten:
    """Every byte of the batch is in the target, trailers last, and nothing of it is in flight."""

    lease: LeaseId
    batch: int
    written_bytes: int
    posting_seconds: float


@unique
class Loss(Enum):
    """Why a batch was given up."""

    STOPPED = "stopped"  # stop_posting: its deadline passed, or its lease was given up
    OUT_OF_RANGE = "out_of_range"  # a source or target page that is not registered; nothing was written
    QUEUE_FULL = "queue_full"  # more than BATCHES_QUEUED_MAX; nothing was written
    CONNECTION = "connection"  # the receiver is gone, closed the connection or cut us
    DESTROYED = "destroyed"  # this side destroyed the connection


@dataclass(frozen=True, slots=True)
class BatchLost:
    """The batch was given up, wholly or after some of its pages.

    `quiet` True proves that nothing of it is in flight and that none of it will land any more. With `quiet`
    False its bytes may land at any time until the receiver proves a cut, or until a later `connect` of the
    same incarnation to the same target has returned.
    """

    lease: LeaseId
    batch: int
    why: Loss
    quiet: bool
    detail: str = ""


Completion = BatchWritten | BatchLost


@unique
class CutResult(Enum):
    """What is proven about an incarnation that may no longer write."""

    PROVEN = "proven"  # no byte of it will ever land here again; it cannot register again either
    PENDING = "pending"  # not yet: ask again; until then its pages stay
    UNKNOWN = "unknown"  # this transport cannot tell, and waiting alone will not change that: its pages stay


PagePause = Callable[[WriteBatch, int], None]
"""A test's hook, called by the writer's thread in mid-page: the page at that index is half written."""


@unique
class Denial(Enum):
    """Why a receiver turned a writer away."""

    WRONG_TARGET = "wrong_target"  # the receiver is not the (node, incarnation) that the writer means
    STALE_WRITER = "stale_writer"  # older than an incarnation seen of that node, or already cut
    NOT_QUIET = "not_quiet"  # an earlier connection of the same incarnation may still write
    LAYOUT = "layout"  # the page layouts differ: pages of one pool mean nothing in the other
    BUSY = "busy"  # WRITERS_MAX connections are already served, or the receiver is closing


class TransportError(PeerError):
    """The other end is unreachable, does not prove the secret, or broke the transport's own protocol."""


class WriterDenied(TransportError):  # noqa: N818 - reads as what happened
    """The receiver refused this (authenticated) writer; `denial` says why. Nothing was registered."""

    def __init__(self, denial: Denial, detail: str) -> None:
        super().__init__(detail)
        self.denial = denial


class PageWriter(Protocol):
    """The writing end. All methods may be called from one thread, the node's; they never block on the peer.

    A thread of its own copies. It reads source pages and writes target pages between `post` and the
    batch's completion, and at no other time.
    """

    @property
    def peer(self) -> Peer:
        """The decode incarnation at the other end."""

    @property
    def alive(self) -> bool:
        """False once the connection is lost or destroyed; never True again."""

    def post(self, batch: WriteBatch) -> None:
        """Queue the batch and return at once. Exactly one completion follows, whatever happens.

        The writer keeps the batch, and reads its source pages, until that completion. Batches are written
        in the order of their posts. (lease, batch) names it; posting that name again before its completion
        raises InvariantError, since an answer to one would be taken for the other's.
        """

    def stop_posting(self, lease: LeaseId, batch: int) -> None:
        """Post no further page of that batch. Its completion still comes, from `poll`.

        It is BatchWritten if everything had been posted already, otherwise BatchLost(STOPPED). A page whose
        writing has begun is finished first. A batch that is not posted (any more) is ignored.
        """

    def poll(self) -> list[Completion]:
        """Take the completions that came since the last call, in order; the caller owns the list."""

    def destroy(self) -> bool:
        """Tear the connection down; True once nothing of ours is read or written by it any more.

        After True, source pages and pins are free to change hands, and each batch has its completion in
        `poll`. False: the copying thread is still in the middle of a page; call again. Idempotent.
        """


class PageReceiver(Protocol):
    """The receiving end: registers writers on the pool, and says what is proven about them.

    It owns its socket and threads until `close`; it borrows the pool, which must outlive it.
    """

    @property
    def address(self) -> str:
        """Where writers connect to, as `connect` takes it."""

    def cut(self, peer: Peer) -> CutResult:
        """Revoke the incarnation for good and say whether it is proven that no byte of it can land.

        An incarnation that is not (or no longer) registered is PROVEN at once, and refused if it comes
        later; so are all older ones of that node. The connection is closed in any case, which tells a
        healthy writer to let go. Blocks for at most half a second; ask again while PENDING.
        """

    def writers(self) -> tuple[Peer, ...]:
        """Every incarnation that registered and is not proven cut, connected or not."""

    def close(self) -> None:
        """Take no more writers, close every connection, remove the socket file. Idempotent.

        Afterwards no thread of this receiver touches the pool. A remote process may: `cut` says what is
        known of each.
        """


class Transport(Protocol):
    """A factory of both ends. Holds no state of a connection; safe to share.

    Each implementation's own docstring states how it orders bytes before `Closed`, and what a cut is.
    """

    @property
    def name(self) -> str:
        """The name in `--transport`."""

    def listen(self, *, pool: Pool, me: Peer, secret: bytes, run_dir: Path, wake: Wake) -> PageReceiver:
        """Accept writers for the whole pool, on behalf of the decode incarnation `me`.

        `wake` is called from the receiver's threads when a writer came or went; it must only signal, never
        call back. Raises OperatorError when the address or the directory cannot be used.
        """

    def connect(
        self, *, address: str, me: Peer, target: Peer, secret: bytes, source_pool: Pool, wake: Wake
    ) -> PageWriter:
        """Register the writer incarnation `me` with `target`; blocks for the handshake, at most 5 seconds.

        Returning proves that nothing of an earlier connection of `me` to `target` can land any more.
        `wake` is called from the writer's thread when a completion or a lost connection is there to poll.
        Raises WriterDenied when the receiver refuses, TransportError when it cannot be reached or does not
        prove the secret, OperatorError for an address that is not this transport's.
        """
