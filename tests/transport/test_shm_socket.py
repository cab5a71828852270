"""Where the socket lies: private, named by incarnation, swept after the dead, never after the living."""

import socket
from pathlib import Path

import pytest

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport.shm_socket import listen_in

ME = Peer("decode-0", 0x2A)


def dead_socket(path: Path) -> Path:
    """A file that a killed process left."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
    return path


def test_the_directory_is_made_private(tmp_path: Path):
    sock, path = listen_in(tmp_path / "deep" / "r", ME)
    sock.close()
    assert path.name == "pages-decode-0-2a.sock"
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_dead_are_swept_and_only_they(tmp_path: Path):
    run_dir = tmp_path / "r"
    run_dir.mkdir(mode=0o700)
    dead = dead_socket(run_dir / "pages-decode-0-29.sock")
    same = dead_socket(run_dir / "pages-decode-0-2a.sock")
    other_node = dead_socket(run_dir / "pages-decode-0-b-29.sock")
    note = run_dir / "pages.txt"
    note.write_text("not ours")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as living:
        alive = run_dir / "pages-decode-0-28.sock"
        living.bind(str(alive))
        living.listen(1)
        sock, path = listen_in(run_dir, ME)
        sock.close()
        assert path == same
        assert {p.name for p in run_dir.iterdir()} == {same.name, other_node.name, note.name, alive.name}
    assert not dead.exists()


def test_a_listener_whose_backlog_is_full_counts_as_living(tmp_path: Path):
    run_dir = tmp_path / "r"
    run_dir.mkdir(mode=0o700)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as living,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller,
    ):
        alive = run_dir / "pages-decode-0-28.sock"
        living.bind(str(alive))
        living.listen(0)
        caller.connect(str(alive))
        sock, _ = listen_in(run_dir, ME)
        sock.close()
        assert alive.exists()


def test_a_directory_that_others_may_read_is_refused(tmp_path: Path):
    run_dir = tmp_path / "r"
    run_dir.mkdir()
    run_dir.chmod(0o755)
    with pytest.raises(OperatorError, match="chmod 700"):
        listen_in(run_dir, ME)


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="cannot be made"):
        listen_in(tmp_path / "file" / "r", ME)


def test_a_path_that_no_socket_can_have_is_refused(tmp_path: Path):
    with pytest.raises(OperatorError, match="shorter"):
        listen_in(tmp_path / ("x" * 110), ME)


@pytest.mark.parametrize("node", ["", "../up", "a b", "-x"])
def test_a_node_name_that_cannot_name_a_file_is_refused(tmp_path: Path, node: str):
    with pytest.raises(OperatorError, match="node name"):
        listen_in(tmp_path, Peer(node, 1))
