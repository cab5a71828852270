"""The run directory of a deployment: its secret, settings, sockets, logs, and who belongs to it.

    <base>/<id>/lock            held by the launcher as long as it lives; the kernel lets go of it
                secret          of this deployment, 32 bytes, for its eyes alone
                <node>.json     a node's settings          <node>.process  its process, by name
                <node>.log      what it printed            *.control, *.data  sockets

Rules it keeps:
- Directories have mode 0700 and files 0600, belong to this user, and are no links; else nothing is used.
- A lock proves life: a directory whose lock can be taken belongs to nobody. It is swept when the next
  deployment starts: what was left running is killed, by process name and never by number alone, and the
  directory is removed. One whose processes would not die stays, and is reported.
- Making and sweeping happen under one lock of the base, so that nobody sweeps what is being made.

It starts nothing and stops nobody who is alive.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from kvfence.protocol.errors import OperatorError, unreachable
from kvfence.serving.processes import ProcessName, kill_process, name_process

SECRET_BYTES = 32
DEPLOYMENTS_MAX = 1024
# A UNIX socket's address has room for 107 bytes, of which the longest name of a socket in the directory
# needs up to 40 (`/pages-decode-63-<incarnation>.sock`).
SOCKET_NAME_BYTES_MAX = 40
PATH_BYTES_MAX = 107 - SOCKET_NAME_BYTES_MAX
KILL_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What was left of one dead deployment. `stuck` are processes that would not die: it stays."""

    deployment: str
    killed: tuple[int, ...]
    stuck: tuple[int, ...]


def runtime_base(environment: Mapping[str, str]) -> Path:
    """Return where run directories live, made if need be and checked. Raises OperatorError."""
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        base = Path(runtime) / "kvfence"
    else:
        base = Path(tempfile.gettempdir()) / f"kvfence-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    _check_private(base)
    return base


def _check_private(path: Path) -> None:
    state = path.lstat()
    is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
    if not is_ours or stat.S_IMODE(state.st_mode) & 0o077:
        raise OperatorError(
            f"{path} is not a directory of this user's alone, so other users could read the deployment's "
            "secret there; remove it, or set XDG_RUNTIME_DIR to a private directory"
        )


class RunDir:
    """One deployment's directory, while its launcher lives."""

    def __init__(self, path: Path, lock_fd: int) -> None:
        """Use `create`."""
        self.path = path
        self._lock_fd = lock_fd

    @classmethod
    def create(cls, base: Path) -> Self:
        """Make a directory with a fresh secret and hold its lock. Raises OperatorError."""
        path = base / secrets.token_hex(4)
        if len(os.fsencode(path)) > PATH_BYTES_MAX:
            raise OperatorError(
                f"{path} is too long for the addresses of sockets in it; set XDG_RUNTIME_DIR to a "
                "directory with a shorter path"
            )
        with _locked(base):
            path.mkdir(mode=0o700)
            lock_fd = _take_lock(path / "lock")
        if lock_fd is None:
            unreachable("nobody else locks a directory that was just made")
        made = cls(path, lock_fd)
        made.write(made.secret_path, secrets.token_bytes(SECRET_BYTES))
        return made

    @property
    def deployment(self) -> str:
        """The deployment's id."""
        return self.path.name

    @property
    def secret_path(self) -> Path:
        """The file of the deployment's secret."""
        return self.path / "secret"

    @property
    def router_control(self) -> str:
        """Where the router's control socket is bound, for ZeroMQ."""
        return f"ipc://{self.path}/router.control"

    def config_path(self, node: str) -> Path:
        """The file of a node's settings."""
        return self.path / f"{node}.json"

    def log_path(self, node: str) -> Path:
        """The file of what a node prints."""
        return self.path / f"{node}.log"

    def write(self, path: Path, data: bytes) -> None:
        """Write a file whole, readable for this user alone; a reader sees the old one or the new one."""
        fresh = path.with_name(f"{path.name}.new")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        fresh.replace(path)

    def record(self, node: str, pid: int) -> None:
        """Remember which process is the node now, for whoever sweeps after us."""
        name = name_process(pid)
        if name is not None:
            self.write(self.path / f"{node}.process", msgspec.json.encode(name))

    def remove(self) -> None:
        """Remove everything and let go of the lock. All processes have ended before."""
        with _locked(self.path.parent):
            shutil.rmtree(self.path)
            self.leave()

    def leave(self) -> None:
        """Let go of the lock alone: the next deployment sweeps the directory."""
        os.close(self._lock_fd)


@contextlib.contextmanager
def _locked(base: Path) -> Iterator[None]:
    """Hold the base's own lock; whoever holds it does so for moments, or for a sweep."""
    fd = os.open(base / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _take_lock(path: Path) -> int | None:
    """Lock a file and return its descriptor, which no child inherits; None when somebody else holds it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def sweep(base: Path, *, patience_s: float = KILL_PATIENCE_S) -> tuple[Swept, ...]:
    """Remove what dead deployments left behind; see the rules above."""
    swept = []
    with _locked(base):
        directories = sorted(entry for entry in base.iterdir() if entry.is_dir() and not entry.is_symlink())
        for directory in directories[:DEPLOYMENTS_MAX]:
            lock_fd = _take_lock(directory / "lock")
            if lock_fd is None:
                continue
            try:
                swept.append(_sweep_one(directory, patience_s))
            finally:
                os.close(lock_fd)
    return tuple(swept)


def _sweep_one(directory: Path, patience_s: float) -> Swept:
    killed: list[int] = []
    stuck: list[int] = []
    for file in sorted(directory.glob("*.process")):
        try:
            name = msgspec.json.decode(file.read_bytes(), type=ProcessName)
        except msgspec.DecodeError:
            continue  # Written whole or not at all; what cannot be read names nobody.
        if name_process(name.pid) != name:
            continue
        (killed if kill_process(name, patience_s=patience_s) else stuck).append(name.pid)
    if not stuck:
        shutil.rmtree(directory)
    return Swept(directory.name, tuple(killed), tuple(stuck))
