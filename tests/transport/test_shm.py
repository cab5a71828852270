"""shm: the conformance suite, and what is its own: the lock, forks, the mapping, the socket file."""

import fcntl
import os
import signal
import socket
import stat
from pathlib import Path

import pytest
from tests.transport.conformance import TransportConformance
from tests.transport.processes import Child
from tests.transport.rig import DECODE, LAYOUT, SECRET, WRITER, Pause, Rig, batch_of, completions, eventually

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport import CutResult, Denial, ShmTransport, TransportError, WriterDenied
from kvfence.transport.admission import Claim
from kvfence.transport.handshake import introduce


def maps_inode(pid: int, inode: int) -> bool:
    """Does that process map the file?"""
    return any(int(line.split()[4]) == inode for line in Path(f"/proc/{pid}/maps").read_text().splitlines())


class TestShm(TransportConformance):
    """The suite, and the rest."""

    factory = "kvfence.transport.shm:ShmTransport"

    def test_a_stopped_writer_is_not_cut(self, rig: Rig):
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.say("post 0 3")
            child.expect("half 0")
            child.stop()
            assert rig.receiver.cut(WRITER) is CutResult.PENDING
            assert rig.receiver.writers() == (WRITER,)
            child.kill()
            rig.cut_until_proven()

    def test_a_child_of_the_writer_holds_the_cut_up_and_has_no_mapping(self, rig: Rig):
        inode = os.fstat(rig.pool.fd).st_ino
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.say("fork")
            grandchild = int(child.hear().split()[1])
            try:
                assert maps_inode(child.pid, inode)
                assert not maps_inode(grandchild, inode)
                child.kill()
                # It could map the memory again through a descriptor that it inherited.
                assert rig.receiver.cut(WRITER) is CutResult.PENDING
            finally:
                os.kill(grandchild, signal.SIGKILL)
            rig.cut_until_proven()

    def test_a_healthy_writer_unmaps_when_it_is_cut(self, rig: Rig):
        inode = os.fstat(rig.pool.fd).st_ino
        with Child.writer(self.factory, rig.receiver.address) as child:
            assert maps_inode(child.pid, inode)
            rig.cut_until_proven()
            assert not maps_inode(child.pid, inode)

    def test_a_cut_in_mid_page_is_pending_until_the_page_is_done(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5]))
        pause.wait()
        assert rig.receiver.cut(WRITER) is CutResult.PENDING
        pause.go()
        rig.cut_until_proven()
        completions(writer, 1)

    def test_the_same_incarnation_is_denied_while_its_earlier_mapping_lives(self, rig: Rig):
        pause = Pause()
        rig.connect(pause=pause).post(batch_of([5]))
        pause.wait()
        with pytest.raises(WriterDenied) as caught:
            rig.connect()
        assert caught.value.denial is Denial.NOT_QUIET

    def test_a_cut_is_unknown_once_the_receiver_is_closed(self, rig: Rig):
        pause = Pause()
        rig.connect(pause=pause).post(batch_of([5]))
        pause.wait()
        rig.receiver.close()
        assert rig.receiver.cut(WRITER) is CutResult.UNKNOWN

    def test_a_cut_is_unknown_when_the_kernel_does_not_say(self, rig: Rig, monkeypatch: pytest.MonkeyPatch):
        def no_locks(fd: int, operation: int) -> None:
            raise OSError(37, "No locks available")

        rig.connect()
        with monkeypatch.context() as patch:
            patch.setattr(fcntl, "flock", no_locks)
            assert rig.receiver.cut(WRITER) is CutResult.UNKNOWN
        rig.cut_until_proven()

    def test_a_view_that_is_still_held_keeps_the_lock(self, rig: Rig):
        writer = rig.connect()
        view = writer._link._mapping.page(3)
        with pytest.raises(BufferError):
            writer._link._mapping.unmap()
        assert rig.receiver._admission._sessions[WRITER].lock.probe() is CutResult.PENDING
        del view
        eventually(writer.destroy, "the writer is destroyed")
        rig.cut_until_proven()

    def test_a_writer_that_speaks_is_sent_away(self, rig: Rig):
        writer = rig.connect()
        writer._link._sock.send(b"!")
        eventually(lambda: not writer.alive, "the connection is over")

    def test_the_socket_is_private_and_goes_with_close(self, rig: Rig):
        path = Path(rig.receiver.address.removeprefix("shm:"))
        assert path.is_socket()
        assert stat.S_IMODE(rig.run_dir.stat().st_mode) == 0o700
        rig.receiver.close()
        assert not path.exists()


def test_a_receiver_of_another_transport_is_recognised(tmp_path: Path):
    rig = Rig(ShmTransport, tmp_path / "r")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(rig.receiver.address.removeprefix("shm:"))
        claim = Claim(writer=WRITER, target=DECODE, layout=LAYOUT.fingerprint())
        with pytest.raises(TransportError, match="--transport"):
            introduce(sock, secret=SECRET, transport="tcp", claim=claim)
    assert rig.receiver.writers() == ()
    rig.close()


def test_a_pool_smaller_than_it_should_be_is_refused(tmp_path: Path):
    rig = Rig(ShmTransport, tmp_path / "r")
    rig.receiver._pool.pages = 1000
    with pytest.raises(TransportError, match="smaller"):
        rig.connect()
    rig.cut_until_proven()
    rig.receiver._pool.pages = rig.target_pages
    rig.close()


def test_two_incarnations_of_a_node_do_not_stand_in_each_others_way(tmp_path: Path):
    older = Rig(ShmTransport, tmp_path / "r")
    newer = Rig(ShmTransport, tmp_path / "r", me=Peer(DECODE.node, DECODE.incarnation + 1))
    older.connect()
    newer.connect()
    newer.close()
    older.close()


def test_one_incarnation_cannot_listen_twice(tmp_path: Path):
    rig = Rig(ShmTransport, tmp_path / "r")
    with pytest.raises(OperatorError, match="twice"):
        ShmTransport().listen(
            pool=rig.pool, me=DECODE, secret=SECRET, run_dir=tmp_path / "r", wake=lambda: None
        )
    rig.close()
