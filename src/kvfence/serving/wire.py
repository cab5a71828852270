"""Messages between nodes: msgpack bodies inside an authenticated envelope.

Every message names its version, its sender's incarnation and, hello apart, the incarnation that it is
meant for; each frame carries a keyed MAC over all of it, and a number that only grows. A message of an
older incarnation, for an older incarnation, seen before, or of another version is dropped by the
control plane and counted: none speaks for another.

What it does not do: encrypt. Prompts cross this wire in the clear; off one machine it belongs on a
private network.
"""

import hashlib
import hmac
from array import array
from collections.abc import Sequence

import msgspec

from kvfence.engine import SamplingParams, TokenLogprobs
from kvfence.protocol.errors import PeerError
from kvfence.protocol.words import (
    AttemptId,
    Done,
    End,
    Failed,
    Failure,
    LeaseId,
    Manifest,
    Outcome,
    PageRef,
    Peer,
    Refusal,
    Refused,
    Role,
)

WIRE_VERSION = 1
MAC_BYTES = 32
FRAME_BYTES_MAX = 64 << 20


class HelloMessage(msgspec.Struct, frozen=True, tag="hello"):
    """A node as it is now: sent to every known peer each second and when its room changed."""

    role: Role
    control_address: str
    pages_address: str | None = None
    pool_tokens: int | None = None
    free_pages: int | None = None
    draining: bool = False
    facts: dict[str, str | int | float | bool | None] = {}
    stats: dict[str, float] = {}


class NodeEntry(msgspec.Struct, frozen=True):
    """Where a node is reached."""

    peer: Peer
    role: Role
    control_address: str
    pages_address: str | None


class DirectoryMessage(msgspec.Struct, frozen=True, tag="directory"):
    """The router tells every node who else is there."""

    nodes: tuple[NodeEntry, ...]


class ReserveMessage(msgspec.Struct, frozen=True, tag="reserve"):
    """Router to decode. `penalised` are prompt ids where a penalty counts them; `made` earlier output."""

    attempt: AttemptId
    writer: Peer
    tokens: int
    max_tokens: int
    token_hash: bytes
    sampling: SamplingParams
    penalised: bytes = b""
    made: bytes = b""


class ReservedMessage(msgspec.Struct, frozen=True, tag="reserved"):
    """Decode to router: the pages, and the key that binds their tags."""

    attempt: AttemptId
    lease: LeaseId
    pages: bytes
    key: bytes


class ReserveRefusedMessage(msgspec.Struct, frozen=True, tag="reserve_refused"):
    """Decode to router."""

    attempt: AttemptId
    refusal: Refusal


class PrefillMessage(msgspec.Struct, frozen=True, tag="prefill"):
    """Router to prefill. `made_tokens` of the tokens are output of earlier attempts."""

    attempt: AttemptId
    decode: Peer
    lease: LeaseId
    pages: bytes
    key: bytes
    tokens: bytes
    domain: str
    sampling: SamplingParams
    made_tokens: int = 0


class AbortMessage(msgspec.Struct, frozen=True, tag="abort"):
    """Router to decode and prefill."""

    attempt: AttemptId


class ClosedMessage(msgspec.Struct, frozen=True, tag="closed"):
    """Prefill to decode: exactly one of done, refused, failed."""

    lease: LeaseId
    done: Manifest | None = None
    refused: Refusal | None = None
    failed: Failure | None = None
    first_logprobs: TokenLogprobs | None = None
    cached_tokens: int = 0


class CloseMessage(msgspec.Struct, frozen=True, tag="close"):
    """Decode to prefill."""

    lease: LeaseId


class LowestLiveMessage(msgspec.Struct, frozen=True, tag="lowest_live"):
    """Decode to prefill."""

    sequence: int


class MadeToken(msgspec.Struct, frozen=True):
    """One token of one attempt, at its absolute position."""

    attempt: AttemptId
    token: int
    position: int
    logprobs: TokenLogprobs | None = None


class TokensMessage(msgspec.Struct, frozen=True, tag="tokens"):
    """Decode to router: what one step made."""

    tokens: tuple[MadeToken, ...]


class EndedMessage(msgspec.Struct, frozen=True, tag="ended"):
    """Decode to router, after the attempt's last token."""

    attempt: AttemptId
    end: End
    cached_tokens: int = 0


Body = (
    HelloMessage
    | DirectoryMessage
    | ReserveMessage
    | ReservedMessage
    | ReserveRefusedMessage
    | PrefillMessage
    | AbortMessage
    | ClosedMessage
    | CloseMessage
    | LowestLiveMessage
    | TokensMessage
    | EndedMessage
)


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """Who says it to whom. `target` is None in a hello and in a directory alone."""

    version: int
    sender: Peer
    target: Peer | None
    number: int
    body: Body


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Envelope)


def seal_frame(secret: bytes, envelope: Envelope) -> bytes:
    """MAC followed by the encoded envelope."""
    encoded = _encoder.encode(envelope)
    return _mac(secret, encoded) + encoded


def open_frame(secret: bytes, frame: bytes) -> Envelope:
    """Check and decode a frame. Raises PeerError saying what is wrong with it."""
    if not MAC_BYTES < len(frame) <= FRAME_BYTES_MAX:
        raise PeerError(f"a control frame of {len(frame)} bytes: dropped")
    mac, encoded = frame[:MAC_BYTES], frame[MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(secret, encoded)):
        raise PeerError("a control frame without this deployment's secret: dropped")
    try:
        envelope = _decoder.decode(encoded)
    except msgspec.MsgspecError as error:
        raise PeerError(f"a control frame that does not decode ({error}): dropped") from error
    if envelope.version != WIRE_VERSION:
        raise PeerError(
            f"{envelope.sender.node} speaks wire version {envelope.version}, this node {WIRE_VERSION}: "
            "dropped; run one version of kvfence in a deployment"
        )
    return envelope


def _mac(secret: bytes, encoded: bytes) -> bytes:
    return hashlib.blake2b(encoded, key=secret, digest_size=MAC_BYTES, person=b"kvfence-control").digest()


def pack_refs(refs: Sequence[PageRef]) -> bytes:
    """Page references as pairs of little-endian 64-bit numbers."""
    packed = array("Q", [part for ref in refs for part in (ref.page, ref.epoch)])
    return packed.tobytes()


def unpack_refs(packed: bytes) -> tuple[PageRef, ...]:
    """Inverse of pack_refs. Raises PeerError for a length that no pack has."""
    if len(packed) % 16:
        raise PeerError(f"page references of {len(packed)} bytes are cut short")
    numbers = array("Q", packed)
    return tuple(map(PageRef, numbers[::2], numbers[1::2]))


def pack_tokens(tokens: Sequence[int]) -> bytes:
    """Token ids as little-endian unsigned 32-bit numbers."""
    return array("I", tokens).tobytes()


def unpack_tokens(packed: bytes) -> tuple[int, ...]:
    """Inverse of pack_tokens. Raises PeerError for a length that no pack has."""
    if len(packed) % 4:
        raise PeerError(f"token ids of {len(packed)} bytes are cut short")
    return tuple(array("I", packed))


def closed_message(
    lease: LeaseId, outcome: Outcome, first_logprobs: TokenLogprobs | None, cached_tokens: int
) -> ClosedMessage:
    """An outcome as it travels."""
    return ClosedMessage(
        lease=lease,
        done=outcome.manifest if isinstance(outcome, Done) else None,
        refused=outcome.refusal if isinstance(outcome, Refused) else None,
        failed=outcome.failure if isinstance(outcome, Failed) else None,
        first_logprobs=first_logprobs,
        cached_tokens=cached_tokens,
    )


def closed_outcome(message: ClosedMessage) -> Outcome:
    """The outcome inside a ClosedMessage. Raises PeerError unless it is exactly one."""
    outcomes: list[Outcome] = []
    if message.done is not None:
        outcomes.append(Done(message.done))
    if message.refused is not None:
        outcomes.append(Refused(message.refused))
    if message.failed is not None:
        outcomes.append(Failed(message.failed))
    if len(outcomes) != 1:
        raise PeerError(f"a Closed with {len(outcomes)} outcomes instead of one: dropped")
    return outcomes[0]
