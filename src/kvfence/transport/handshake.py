"""The first words on a page connection: who you are, whom you mean, and that both know the secret.

    receiver ── Challenge(version, transport, nonce) ──▶ writer
    receiver ◀── Offer(writer, target, layout, nonce) ── writer
    receiver ── Answer(denial | pages) ────────────────▶ writer

Rules: each message carries an HMAC-SHA256, under the deployment's secret, over its direction and over every
byte said so far, so that neither end can be imitated, nor an old conversation replayed. A message is parsed
only after that has been verified. The whole exchange has one deadline. Nothing of the pool (no size, no
file descriptor) leaves before the writer has proven itself.

It encrypts nothing, and decides nothing about who is admitted.
"""

import hashlib
import hmac
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport.admission import Claim
from kvfence.transport.base import SECRET_BYTES_MIN, Denial, TransportError, WriterDenied

VERSION: Final = 1
HANDSHAKE_SECONDS: Final = 5.0
MESSAGE_BYTES_MAX: Final = 4096
NONCE_BYTES: Final = 32
_LENGTH: Final = struct.Struct("!I")
_PROOF_BYTES: Final = hashlib.sha256().digest_size
_FROM_RECEIVER: Final = b"kvfence pages, receiver"
_FROM_WRITER: Final = b"kvfence pages, writer"


class Challenge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The receiver opens; its nonce makes the conversation new."""

    version: int
    transport: str
    nonce: bytes


class Offer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The writer names itself, the incarnation that it means, and its page layout."""

    node: str
    incarnation: int
    target_node: str
    target_incarnation: int
    layout: bytes
    nonce: bytes


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The receiver admits (with the count of its pages and its layout) or denies."""

    denial: Denial | None
    detail: str
    pages: int
    layout: bytes


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the writer knows after a good handshake."""

    pages: int
    session_key: bytes


Message = TypeVar("Message", Challenge, Offer, Answer)


def check_secret(secret: bytes) -> None:
    """Raise OperatorError for a secret that could be guessed."""
    if len(secret) < SECRET_BYTES_MIN:
        raise OperatorError(
            f"the deployment's secret has {len(secret)} bytes, at least {SECRET_BYTES_MIN} are needed: "
            "generate one and give the same to every node"
        )


class _Conversation:
    """Framed, proven messages over a stream socket, under one deadline."""

    def __init__(self, sock: socket.socket, secret: bytes) -> None:
        self._sock = sock
        self._secret = secret
        self._said = hashlib.sha256()
        self._deadline_s = time.monotonic() + HANDSHAKE_SECONDS

    def say(self, direction: bytes, message: Challenge | Offer | Answer) -> None:
        body = msgspec.msgpack.encode(message)
        proof = self._proof(direction, body)
        self._arm()
        self._sock.sendall(_LENGTH.pack(len(body)) + body + proof)

    def hear(self, direction: bytes, kind: type[Message]) -> Message:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MESSAGE_BYTES_MAX:
            raise TransportError(f"a handshake message of {length} bytes is over {MESSAGE_BYTES_MAX}")
        body = self._exactly(length)
        proof = self._exactly(_PROOF_BYTES)
        if not hmac.compare_digest(proof, self._proof(direction, body)):
            raise TransportError(
                "the other end did not prove the deployment's secret: start all nodes with the same one"
            )
        try:
            return msgspec.msgpack.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise TransportError(f"not a handshake of this version of kvfence: {error}") from error

    def session_key(self) -> bytes:
        return hmac.digest(self._secret, b"kvfence pages, session" + self._said.digest(), "sha256")

    def done(self) -> None:
        self._sock.settimeout(None)

    def _proof(self, direction: bytes, body: bytes) -> bytes:
        self._said.update(_LENGTH.pack(len(body)) + body)
        return hmac.digest(self._secret, direction + self._said.digest(), "sha256")

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            self._arm()
            piece = self._sock.recv(count - len(data))
            if not piece:
                raise TransportError("the other end closed the connection during the handshake")
            data += piece
        return bytes(data)

    def _arm(self) -> None:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TransportError(f"the handshake took more than {HANDSHAKE_SECONDS:g} s")
        self._sock.settimeout(left_s)


class ReceiverHandshake:
    """The receiver's half: `claim`, then exactly one of `admit` and `deny`."""

    def __init__(self, sock: socket.socket, *, secret: bytes, transport: str) -> None:
        self._talk = _Conversation(sock, secret)
        self._transport = transport

    def claim(self) -> Claim:
        """Challenge the writer and return what it proved to be. Raises TransportError or OSError."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        self._talk.say(_FROM_RECEIVER, Challenge(VERSION, self._transport, nonce))
        offer = self._talk.hear(_FROM_WRITER, Offer)
        return Claim(
            writer=Peer(offer.node, offer.incarnation),
            target=Peer(offer.target_node, offer.target_incarnation),
            layout=offer.layout,
        )

    def admit(self, *, pages: int, layout: bytes) -> bytes:
        """Tell the writer that it may write; returns the key of this session. The socket blocks after it."""
        self._talk.say(_FROM_RECEIVER, Answer(None, "", pages, layout))
        self._talk.done()
        return self._talk.session_key()

    def deny(self, denied: WriterDenied) -> None:
        """Tell the writer why it may not."""
        self._talk.say(_FROM_RECEIVER, Answer(denied.denial, str(denied), 0, b""))


def introduce(sock: socket.socket, *, secret: bytes, transport: str, claim: Claim) -> Admitted:
    """The writer's half. Raises WriterDenied, TransportError or OSError. The socket blocks after it."""
    talk = _Conversation(sock, secret)
    challenge = talk.hear(_FROM_RECEIVER, Challenge)
    if challenge.version != VERSION or challenge.transport != transport:
        raise TransportError(
            f"the receiver speaks {challenge.transport} version {challenge.version}, this node {transport} "
            f"version {VERSION}: start all nodes from one version, with one --transport"
        )
    talk.say(
        _FROM_WRITER,
        Offer(
            node=claim.writer.node,
            incarnation=claim.writer.incarnation,
            target_node=claim.target.node,
            target_incarnation=claim.target.incarnation,
            layout=claim.layout,
            nonce=secrets.token_bytes(NONCE_BYTES),
        ),
    )
    answer = talk.hear(_FROM_RECEIVER, Answer)
    if answer.denial is not None:
        raise WriterDenied(answer.denial, answer.detail)
    if answer.layout != claim.layout:
        raise TransportError("the receiver admitted a writer whose page layout is not its own")
    talk.done()
    return Admitted(pages=answer.pages, session_key=talk.session_key())
