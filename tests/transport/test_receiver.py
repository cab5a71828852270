"""The receiving end that the transports share: admit, turn away, cut, close. Its transports run conformance."""

import socket

import pytest

from kvfence.kv.layout import LayerShape, PageLayout
from kvfence.kv.pool import Pool
from kvfence.protocol.words import Peer
from kvfence.transport.admission import Claim
from kvfence.transport.base import CutResult, Denial, TransportError, WriterDenied
from kvfence.transport.handshake import introduce
from kvfence.transport.receiver import AdmittingReceiver

LAYOUT = PageLayout((LayerShape(1, 2, 2),), 4, "float32")
SECRET = b"s" * 32
DECODE, WRITER = Peer("decode-0", 7), Peer("prefill-0", 5)


class Session:
    """Quiet when the test says so."""

    def __init__(self):
        self.result, self.ended = CutResult.PENDING, False

    def quiesce(self):
        return self.result

    def end(self):
        self.ended = True


class Receiver(AdmittingReceiver):
    """Serves a writer until it hangs up."""

    transport = "fake"

    def __init__(self, sock, pool):
        self.sessions = []
        super().__init__(sock, address="here", pool=pool, me=DECODE, secret=SECRET, wake=lambda: None)

    def _open_session(self, _connection):
        self.sessions.append(Session())
        return self.sessions[-1]

    def _receive(self, connection, handshake, _claim, _session):
        handshake.admit(pages=self._pool.pages, layout=LAYOUT.fingerprint())
        connection.sock.recv(1)


@pytest.fixture
def receiver():
    sock = socket.create_server(("127.0.0.1", 0))
    receiver = Receiver(sock, Pool.create(LAYOUT, 3))
    receiver.port = sock.getsockname()[1]
    yield receiver
    receiver.close()


def connect(receiver, writer=WRITER, *, secret=SECRET, target=DECODE):
    sock = socket.create_connection(("127.0.0.1", receiver.port), timeout=10)
    try:
        claim = Claim(writer=writer, target=target, layout=LAYOUT.fingerprint())
        return sock, introduce(sock, secret=secret, transport="fake", claim=claim)
    except BaseException:
        sock.close()
        raise


def test_a_writer_is_admitted_and_known_until_its_cut_is_proven(receiver):
    sock, admitted = connect(receiver)
    with sock:
        assert (receiver.address, admitted.pages) == ("here", 3)
        assert receiver.writers() == (WRITER,)
        assert receiver.cut(WRITER) is CutResult.PENDING
        assert receiver.writers() == (WRITER,)
        receiver.sessions[0].result = CutResult.PROVEN
        assert receiver.cut(WRITER) is CutResult.PROVEN
        assert receiver.writers() == ()


def test_a_writer_that_was_cut_is_turned_away_with_the_reason(receiver):
    assert receiver.cut(WRITER) is CutResult.PROVEN
    with pytest.raises(WriterDenied) as denied:
        connect(receiver)
    assert denied.value.denial is Denial.STALE_WRITER
    assert receiver.sessions == []


def test_one_without_the_secret_is_not_even_told_why(receiver):
    with pytest.raises(TransportError):
        connect(receiver, secret=b"x" * 32)
    assert receiver.sessions == []


def test_close_ends_every_session_and_may_be_repeated(receiver):
    sock, _ = connect(receiver)
    with sock:
        receiver.close()
        receiver.close()
        assert receiver.sessions[0].ended
