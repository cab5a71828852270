"""The handshake over a joined pair of sockets: it succeeds, and each tampering is seen by the right end."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport import Denial, TransportError, WriterDenied, handshake
from kvfence.transport.admission import Claim
from kvfence.transport.handshake import Admitted, ReceiverHandshake, check_secret, introduce

SECRET = b"s" * 32
CLAIM = Claim(writer=Peer("prefill-0", 7), target=Peer("decode-0", 5), layout=b"layout")

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def in_thread(act: Callable[[], Any]) -> Callable[[], Any]:
    """Run `act` beside the test; calling what is returned joins it and gives its result or raises."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(act())
        except Exception as error:  # noqa: BLE001 - handed to the caller, whatever it is
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join() -> Any:
        thread.join(20)
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]

    return join


def receive(sock: socket.socket, *, secret: bytes = SECRET, layout: bytes = b"layout") -> tuple[Claim, bytes]:
    talk = ReceiverHandshake(sock, secret=secret, transport="shm")
    claim = talk.claim()
    return claim, talk.admit(pages=9, layout=layout)


def test_both_ends_agree_on_everything(pair: Pair):
    other = in_thread(lambda: receive(pair[0]))
    admitted = introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)
    claim, session_key = other()
    assert claim == CLAIM
    assert admitted == Admitted(pages=9, session_key=session_key)
    assert pair[0].gettimeout() is None
    assert pair[1].gettimeout() is None


def test_each_session_has_its_own_key(pair: Pair):
    keys = set()
    for _ in range(2):
        left, right = socket.socketpair()
        with left, right:
            other = in_thread(lambda end=left: receive(end))
            keys.add(introduce(right, secret=SECRET, transport="shm", claim=CLAIM).session_key)
            other()
    assert len(keys) == 2


def test_a_writer_without_the_secret_is_not_believed(pair: Pair):
    other = in_thread(lambda: receive(pair[0]))
    assert pair[1].recv(4096)  # it does not care who the receiver is
    pair[1].sendall(b"\x00\x00\x00\x02{}" + b"\x00" * 32)
    with pytest.raises(TransportError, match="secret"):
        other()


def test_a_receiver_without_the_secret_is_not_believed(pair: Pair):
    other = in_thread(lambda: receive(pair[0], secret=b"x" * 32))
    with pytest.raises(TransportError, match="secret"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)
    pair[1].close()
    with pytest.raises((TransportError, OSError)):
        other()


def test_a_denial_arrives_with_its_reason(pair: Pair):
    def deny() -> None:
        talk = ReceiverHandshake(pair[0], secret=SECRET, transport="shm")
        talk.claim()
        talk.deny(WriterDenied(Denial.STALE_WRITER, "cut at noon"))

    other = in_thread(deny)
    with pytest.raises(WriterDenied, match="cut at noon") as caught:
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)
    assert caught.value.denial is Denial.STALE_WRITER
    other()


def test_another_layout_in_the_answer_is_seen_by_the_writer(pair: Pair):
    other = in_thread(lambda: receive(pair[0], layout=b"another"))
    with pytest.raises(TransportError, match="layout"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)
    other()


def test_another_version_is_named(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handshake, "VERSION", 2)
    other = in_thread(lambda: receive(pair[0]))
    challenge = pair[1].recv(4096, socket.MSG_PEEK)
    assert challenge
    monkeypatch.setattr(handshake, "VERSION", 1)
    with pytest.raises(TransportError, match="version"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)
    pair[1].close()
    with pytest.raises((TransportError, OSError)):
        other()


def test_an_answer_of_an_earlier_conversation_is_not_believed(pair: Pair):
    """A replayed challenge and answer verify only against the nonce that the writer drew then."""
    recorded = bytearray()
    left, right = socket.socketpair()

    class Tap:
        def __init__(self, sock: socket.socket) -> None:
            self.sock = sock

        def sendall(self, data: bytes) -> None:
            recorded.extend(data)
            self.sock.sendall(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.sock, name)

    with left, right:
        other = in_thread(lambda: receive(Tap(left)))  # type: ignore[arg-type]
        introduce(right, secret=SECRET, transport="shm", claim=CLAIM)
        other()
    pair[0].sendall(bytes(recorded))
    with pytest.raises(TransportError, match="secret"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)


def test_an_over_long_message_is_refused_unread(pair: Pair):
    pair[0].sendall(b"\x7f\xff\xff\xff")
    with pytest.raises(TransportError, match="over"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)


def test_silence_has_a_deadline(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handshake, "HANDSHAKE_SECONDS", 0.01)
    with pytest.raises(TimeoutError):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)


def test_a_deadline_that_has_passed_is_said(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handshake, "HANDSHAKE_SECONDS", -1.0)
    with pytest.raises(TransportError, match="took more"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)


def test_hanging_up_is_said(pair: Pair):
    pair[0].close()
    with pytest.raises(TransportError, match="closed the connection"):
        introduce(pair[1], secret=SECRET, transport="shm", claim=CLAIM)


def test_secrets_have_a_least_length():
    check_secret(b"x" * 16)
    with pytest.raises(OperatorError, match="at least 16"):
        check_secret(b"x" * 15)
