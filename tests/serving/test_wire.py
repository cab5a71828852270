"""Messages as they travel: authenticated, of one version, and read back as they were."""

import msgspec
import pytest

from kvfence.engine.sampling import SamplingParams, TokenLogprobs
from kvfence.protocol.errors import PeerError
from kvfence.protocol.words import (
    AttemptId,
    Done,
    End,
    EndReason,
    Failed,
    Failure,
    LeaseId,
    Manifest,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Refused,
    Role,
)
from kvfence.serving import wire
from kvfence.serving.wire import (
    FRAME_BYTES_MAX,
    MAC_BYTES,
    WIRE_VERSION,
    AbortMessage,
    Body,
    ClosedMessage,
    CloseMessage,
    DirectoryMessage,
    EndedMessage,
    Envelope,
    HelloMessage,
    LowestLiveMessage,
    MadeToken,
    NodeEntry,
    PrefillMessage,
    ReservedMessage,
    ReserveMessage,
    ReserveRefusedMessage,
    TokensMessage,
    closed_message,
    closed_outcome,
    open_frame,
    pack_refs,
    pack_tokens,
    seal_frame,
    unpack_refs,
    unpack_tokens,
)

SECRET = b"s" * 32
ME, OTHER = Peer("router", 10), Peer("decode-0", 2**62)
ATTEMPT, LEASE = AttemptId(10, 1, 2), LeaseId(2**62, 3)
SAMPLING = SamplingParams(seed=2**62, temperature=0.5, logit_bias=((3, -1.5),), logprobs=2)
LOGPROBS = TokenLogprobs(-0.5, ((3, -0.5), (4, -2.0)))
MANIFEST = Manifest(LEASE, OTHER, 6, 2, b"h" * 32, 9, 6)
REFUSAL = Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=9, limit_tokens=8)
BODIES = (
    HelloMessage(role=Role.DECODE, control_address="a", pool_tokens=5, facts={"x": None}, stats={"y": 1.5}),
    DirectoryMessage((NodeEntry(OTHER, Role.DECODE, "a", None),)),
    ReserveMessage(ATTEMPT, OTHER, 6, 3, b"h" * 32, SAMPLING, penalised=b"1234", made=b"5678"),
    ReservedMessage(ATTEMPT, LEASE, b"p" * 16, b"k" * 32),
    ReserveRefusedMessage(ATTEMPT, REFUSAL),
    PrefillMessage(ATTEMPT, OTHER, LEASE, b"p" * 16, b"k" * 32, b"tttt", "domain", SAMPLING, 1),
    AbortMessage(ATTEMPT),
    ClosedMessage(lease=LEASE, done=MANIFEST, first_logprobs=LOGPROBS, cached_tokens=4),
    CloseMessage(LEASE),
    LowestLiveMessage(7),
    TokensMessage((MadeToken(ATTEMPT, 9, 6, LOGPROBS),)),
    EndedMessage(ATTEMPT, End(EndReason.REFUSED, refusal=REFUSAL), 4),
)


def envelope(body=BODIES[0], version=WIRE_VERSION):
    return Envelope(version, ME, OTHER, 1, body)


def test_every_kind_of_message_has_a_sample_here():
    assert {type(body) for body in BODIES} == set(Body.__args__)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_a_message_is_read_back_as_it_was(body):
    assert open_frame(SECRET, seal_frame(SECRET, envelope(body))) == envelope(body)


def test_a_frame_of_another_deployment_is_not_read():
    with pytest.raises(PeerError, match="secret"):
        open_frame(b"x" * 32, seal_frame(SECRET, envelope()))


@pytest.mark.parametrize("place", [0, MAC_BYTES, -1])
def test_a_frame_of_which_any_byte_was_changed_is_not_read(place):
    frame = bytearray(seal_frame(SECRET, envelope()))
    frame[place] ^= 1
    with pytest.raises(PeerError, match="secret"):
        open_frame(SECRET, bytes(frame))


@pytest.mark.parametrize("size", [0, MAC_BYTES, FRAME_BYTES_MAX + 1])
def test_a_frame_that_is_too_short_or_too_long_is_not_even_hashed(size):
    with pytest.raises(PeerError, match=f"of {size} bytes"):
        open_frame(SECRET, bytes(size))


def test_another_version_is_refused_by_name():
    with pytest.raises(PeerError, match=f"router speaks wire version {WIRE_VERSION + 1}"):
        open_frame(SECRET, seal_frame(SECRET, envelope(version=WIRE_VERSION + 1)))


def test_an_authentic_frame_that_makes_no_sense_is_refused():
    encoded = msgspec.msgpack.encode([WIRE_VERSION, "nobody"])
    with pytest.raises(PeerError, match="does not decode"):
        open_frame(SECRET, wire._mac(SECRET, encoded) + encoded)


def test_references_and_tokens_are_packed_whole():
    refs = (PageRef(0, 1), PageRef(2**40, 2**63))
    assert unpack_refs(pack_refs(refs)) == refs
    assert unpack_tokens(pack_tokens((0, 1, 2**32 - 1))) == (0, 1, 2**32 - 1)
    assert unpack_refs(b"") == unpack_tokens(b"") == ()


def test_what_was_cut_short_is_refused():
    with pytest.raises(PeerError, match="cut short"):
        unpack_refs(pack_refs((PageRef(1, 1),))[:-1])
    with pytest.raises(PeerError, match="cut short"):
        unpack_tokens(b"123")


@pytest.mark.parametrize("outcome", [Done(MANIFEST), Refused(REFUSAL), Failed(Failure.ABORTED)])
def test_an_outcome_travels_as_itself(outcome):
    message = closed_message(LEASE, outcome, LOGPROBS, 4)
    assert closed_outcome(message) == outcome
    assert (message.lease, message.first_logprobs, message.cached_tokens) == (LEASE, LOGPROBS, 4)


@pytest.mark.parametrize(
    "message",
    [ClosedMessage(lease=LEASE), ClosedMessage(lease=LEASE, done=MANIFEST, failed=Failure.ABORTED)],
)
def test_a_closed_has_exactly_one_outcome(message):
    with pytest.raises(PeerError, match="instead of one"):
        closed_outcome(message)
