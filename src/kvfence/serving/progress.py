"""What a node tells its launcher: JSON lines on an inherited pipe, and the reader that puts them together.

    {"event":"started","incarnation":81723}                      the first line of every process
    {"event":"progress","step":"loading the model","done":3,"total":7}
    {"event":"ready","incarnation":81723,"pool_tokens":16384,"pool_bytes":…,"url":null}
    {"event":"kill","node":"prefill-0","incarnation":81722}      a decode node wants a cut
    {"event":"failed","exit_code":2,"message":"…"}               why the process is about to end

The pipe is the launcher's own, so nothing on it is authenticated: whoever can write to it is a node that
the launcher started. A line that cannot be read is that node's fault and is reported as such. The end
of the pipe is the end of the process.

A reader never blocks and holds at most one unfinished line of bounded length.
"""

import os
from collections.abc import Iterator

import msgspec

from kvfence.protocol.errors import PeerError

LINE_BYTES_MAX = 64 << 10
READ_BYTES = 64 << 10


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="progress"):
    """A step of the start was begun, or got further; `total` None when nobody knows."""

    step: str
    done: int = 0
    total: int | None = None


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="ready"):
    """The node can serve. Pool figures are read back from the allocated buffer; `url` is the router's."""

    incarnation: int
    pool_tokens: int | None = None
    pool_bytes: int | None = None
    context_tokens: int | None = None
    url: str | None = None


class Started(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="started"):
    """The node drew its incarnation. Sent first, so that a kill request for it can be obeyed."""

    incarnation: int


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="kill"):
    """Kill exactly this incarnation of that node, and reap it: its death is somebody's cut."""

    node: str
    incarnation: int


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag="failed"):
    """The node ends, and this is why. `exit_code` 2: the operator can mend it, restarting cannot."""

    message: str
    exit_code: int


NodeStatus = Progress | Started | Ready | Kill | Failed
_DECODER = msgspec.json.Decoder(NodeStatus)


def encode_status(status: NodeStatus) -> bytes:
    """Return one line."""
    return msgspec.json.encode(status) + b"\n"


class StatusWriter:
    """The node's end. A launcher that is gone is no fault here: the kernel ends the node with it."""

    def __init__(self, fd: int) -> None:
        """Own `fd`, the write end of the pipe."""
        self._fd = fd
        self._closed = False

    def send(self, status: NodeStatus) -> bool:
        """Write one line whole; False when nobody reads any more."""
        line = memoryview(encode_status(status))
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except BrokenPipeError:
            return False
        return True

    def close(self) -> None:
        """Close the pipe; once more changes nothing."""
        if not self._closed:
            self._closed = True
            os.close(self._fd)


class StatusReader:
    """The launcher's end of one node's pipe."""

    def __init__(self, fd: int) -> None:
        """Own `fd`, the read end, and make it non-blocking."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._rest = b""
        self._closed = False
        self.ended = False

    def fileno(self) -> int:
        """The descriptor, for a selector."""
        return self._fd

    def read(self) -> Iterator[NodeStatus]:
        """Yield what has arrived. Sets `ended` at the end. Raises PeerError for a line that is no status."""
        while not self.ended:
            try:
                data = os.read(self._fd, READ_BYTES)
            except BlockingIOError:
                return
            self.ended = not data
            *lines, self._rest = (self._rest + data).split(b"\n")
            yield from map(_parse, lines)
            if len(self._rest) > LINE_BYTES_MAX:
                raise PeerError(f"a node wrote a status line of over {LINE_BYTES_MAX:,} bytes; restart it")

    def close(self) -> None:
        """Close the pipe; once more changes nothing."""
        if not self._closed:
            self._closed = True
            os.close(self._fd)


def _parse(line: bytes) -> NodeStatus:
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        shown = line[:200].decode("utf-8", "replace")
        raise PeerError(f"a node wrote a status line that cannot be read ({error}): {shown!r}") from error
