"""tcp: the conformance suite, and what is its own: bytes after the sender's death, forged headers, bounds."""

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.transport.conformance import TransportConformance
from tests.transport.processes import Child
from tests.transport.rig import (
    DECODE,
    LAYOUT,
    LEASE,
    PATIENCE_SECONDS,
    SECRET,
    TARGET_PAGES,
    WRITER,
    Pause,
    Rig,
    batch_of,
    eventually,
    lost,
    written,
)

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import LeaseId, Peer
from kvfence.transport import CutResult, Loss, TcpTransport
from kvfence.transport.admission import Claim
from kvfence.transport.handshake import introduce
from kvfence.transport.tcp_frames import FROM_WRITER, Header, HeaderSealer, Kind


class TestTcp(TransportConformance):
    """The suite, and the rest."""

    factory = "kvfence.transport.tcp:TcpTransport"

    def test_the_cut_of_a_stopped_writer_is_proven_at_once(self, rig: Rig):
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.say("post 0 3")
            child.expect("half 0")
            child.stop()
            assert rig.receiver.cut(WRITER) is CutResult.PROVEN

    def test_a_batch_lost_in_mid_page_is_not_quiet_until_its_incarnation_has_connected_again(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5, 6]))
        pause.wait()
        again = rig.connect()
        proven = rig.snapshot()
        pause.go()
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.CONNECTION, False)
        assert rig.snapshot() == proven
        again.post(batch_of([5, 6]))
        written(again)

    def test_a_destroyed_connections_batch_is_not_quiet(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5, 6]))
        pause.wait()
        assert not writer.destroy()
        pause.go()
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.DESTROYED, False)


class PlacePause:
    """Stops the receiving thread before it stores a page."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def __call__(self, page: int) -> None:
        self.reached.set()
        assert self.released.wait(PATIENCE_SECONDS)


@pytest.fixture
def held(tmp_path: Path):
    """A rig whose receiving thread sleeps before the first page, and whose sender has died."""
    pause = PlacePause()
    rig = Rig(lambda **hooks: TcpTransport(place_pause=pause, **hooks), tmp_path)
    with Child.writer("kvfence.transport.tcp:TcpTransport", rig.receiver.address) as child:
        child.say("go")
        child.say("post 0 3")
        child.expect("half 0")
        assert pause.reached.wait(PATIENCE_SECONDS)
        # One page fits into the socket's buffers: it is all sent when the sender dies.
        eventually(lambda: _queued_bytes(rig) >= LAYOUT.page_bytes, "the page is in the receiver's buffer")
    yield rig, pause
    pause.released.set()
    rig.close()


def _queued_bytes(rig: Rig) -> int:
    (session,) = rig.receiver._admission._sessions.values()
    return len(session._connection.sock.recv(2 * LAYOUT.page_bytes, socket.MSG_PEEK))


def test_the_death_of_the_sender_is_no_cut(held):
    rig, pause = held
    assert rig.untouched(3)
    pause.released.set()
    eventually(lambda: rig.page_is(3, 1), "bytes arrive after their sender was reaped")
    assert rig.receiver.writers() == (WRITER,)
    rig.cut_until_proven()


def test_a_cut_is_pending_while_the_receiving_thread_runs_and_then_nothing_is_stored(held):
    rig, pause = held
    assert rig.receiver.cut(WRITER) is CutResult.PENDING
    assert rig.receiver.writers() == (WRITER,)
    pause.released.set()
    rig.cut_until_proven()
    assert rig.changed_pages() == set()


class RawWriter:
    """A writer that has proven the secret and then says what it likes."""

    def __init__(self, rig: Rig) -> None:
        host, port = rig.receiver.address.removeprefix("tcp:").split(":")
        self.sock = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        claim = Claim(writer=WRITER, target=DECODE, layout=LAYOUT.fingerprint())
        self.admitted = introduce(self.sock, secret=SECRET, transport="tcp", claim=claim)
        self.sock.settimeout(PATIENCE_SECONDS)
        self.sealer = HeaderSealer(self.admitted.session_key, FROM_WRITER)

    def say(self, kind: Kind, *, index: int = 0, page: int = 0, batch: int = 0) -> bytes:
        return self.sealer.seal(Header(kind, LEASE, batch, index, page))


PAGE = b"\x77" * LAYOUT.page_bytes


def _with_its_last_bit_turned(header: bytes) -> bytes:
    return header[:-1] + bytes([header[-1] ^ 1])


OFFENCES: dict[str, Callable[[RawWriter], bytes]] = {
    "page out of range": lambda raw: raw.say(Kind.PAGE, page=TARGET_PAGES) + PAGE,
    "page far out of range": lambda raw: raw.say(Kind.PAGE, page=2**63) + PAGE,
    "forged tag": lambda raw: _with_its_last_bit_turned(raw.say(Kind.PAGE, page=3)) + PAGE,
    "another session's key": lambda raw: (
        HeaderSealer(b"k" * 32, FROM_WRITER).seal(Header(Kind.PAGE, LEASE, 0, 0, 3)) + PAGE
    ),
    "page out of order": lambda raw: raw.say(Kind.PAGE, index=1, page=3) + PAGE,
    "more pages claimed than came": lambda raw: raw.say(Kind.SYNC, index=1),
    "a receiver's word": lambda raw: raw.say(Kind.SYNCED),
}


@pytest.mark.parametrize("offence", OFFENCES)
def test_a_writer_that_breaks_the_protocol_is_sent_away_before_anything_is_stored(
    tmp_path: Path, offence: str
):
    rig = Rig(TcpTransport, tmp_path)
    raw = RawWriter(rig)
    with contextlib.closing(raw.sock):
        try:
            raw.sock.sendall(OFFENCES[offence](raw))
            answer = raw.sock.recv(1)
        except ConnectionError:
            answer = b""
    assert answer == b""
    rig.cut_until_proven()
    assert rig.changed_pages() == set()
    rig.close()


def test_a_page_that_ends_early_gets_no_answer_and_keeps_its_old_trailer(tmp_path: Path):
    rig = Rig(TcpTransport, tmp_path)
    raw = RawWriter(rig)
    raw.sock.sendall(raw.say(Kind.PAGE, page=3) + PAGE[:100])
    raw.sock.shutdown(socket.SHUT_WR)
    assert raw.sock.recv(1) == b""
    raw.sock.close()
    rig.cut_until_proven()
    assert rig.changed_pages() == {3}
    assert (rig.pool.trailer(3) == 0xEE).all()
    rig.close()


def test_a_replayed_header_is_recognised(tmp_path: Path):
    rig = Rig(TcpTransport, tmp_path)
    raw = RawWriter(rig)
    header = raw.say(Kind.PAGE, page=3)
    sync = raw.say(Kind.SYNC, index=1)
    raw.sock.sendall(header + PAGE + sync)
    assert len(raw.sock.recv(64)) == 64
    try:
        raw.sock.sendall(header + b"\x11" * LAYOUT.page_bytes)
        assert raw.sock.recv(1) == b""
    except ConnectionError:
        pass  # the receiver hung up while we were still sending: just as well
    raw.sock.close()
    rig.cut_until_proven()
    assert bytes(rig.pool.page(3)) == PAGE
    rig.close()


def test_a_stranger_learns_nothing_and_is_not_registered(tmp_path: Path):
    rig = Rig(TcpTransport, tmp_path)
    host, port = rig.receiver.address.removeprefix("tcp:").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: pages\r\n\r\n")
        heard = b""
        try:
            while piece := sock.recv(4096):
                heard += piece
        except ConnectionError:
            pass  # reset: our words were left unread
    assert LAYOUT.fingerprint() not in heard
    assert rig.receiver.writers() == ()
    rig.close()


def test_a_host_that_is_not_of_this_machine_is_the_operators_mistake(tmp_path: Path):
    rig = Rig(TcpTransport, tmp_path)
    with pytest.raises(OperatorError, match=r"192\.0\.2\.1"):
        TcpTransport(host="192.0.2.1").listen(
            pool=rig.pool, me=DECODE, secret=SECRET, run_dir=tmp_path, wake=lambda: None
        )
    rig.close()


def test_the_advertised_host_is_what_writers_are_told(tmp_path: Path):
    rig = Rig(lambda **hooks: TcpTransport(advertise_host="localhost", **hooks), tmp_path)
    assert rig.receiver.address.startswith("tcp:localhost:")
    writer = rig.connect(Peer("prefill-9", 1))
    writer.post(batch_of([1]))
    assert written(writer).lease == LeaseId(DECODE.incarnation, 1)
    rig.close()
