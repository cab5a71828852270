"""The UNIX socket of an shm receiver: where it lies, who may reach it, what a dead node left behind.

Rules: the directory is ours alone (0700); the file is named by node and incarnation, so that a new
incarnation never stands in the way of a dying one; files of this node that nobody listens on are removed at
the next start, since kill -9 removes none.
"""

import os
import re
import socket
import stat
from pathlib import Path

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer

SOCKET_PATH_BYTES_MAX = 107  # what sun_path holds, without its final zero
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def listen_in(run_dir: Path, me: Peer) -> tuple[socket.socket, Path]:
    """Bind the socket of `me`; the caller owns the socket and the file. Raises OperatorError."""
    if not _NODE_NAME.fullmatch(me.node):
        raise OperatorError(f"the node name {me.node!r} cannot name a file: use letters, digits, - _ and .")
    _private(run_dir)
    _sweep(run_dir, me.node)
    path = run_dir / f"pages-{me.node}-{me.incarnation:x}.sock"
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        raise OperatorError(
            f"{path} is longer than the {SOCKET_PATH_BYTES_MAX} bytes of a socket's name: choose a shorter "
            "run directory or node name"
        )
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(str(path))
    except OSError as error:
        sock.close()
        raise OperatorError(
            f"{path} cannot be bound: {error.strerror}; is this node running twice?"
        ) from error
    return sock, path


def _private(run_dir: Path) -> None:
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = run_dir.stat()
    except OSError as error:
        raise OperatorError(f"the run directory {run_dir} cannot be made: {error.strerror}") from error
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise OperatorError(
            f"the run directory {run_dir} is open to others: it must belong to this user with mode 0700 "
            f"(chmod 700 {run_dir})"
        )


def _sweep(run_dir: Path, node: str) -> None:
    name = re.compile(rf"pages-{re.escape(node)}-[0-9a-f]+\.sock")
    for path in run_dir.iterdir():
        if name.fullmatch(path.name) and not _listened_on(path):
            path.unlink(missing_ok=True)


def _listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A full backlog must not hold this start up: a listener that does not answer is still one.
        probe.setblocking(False)  # noqa: FBT003 - the socket module's own signature
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True
