"""The nodes' log files: what of them the operator sees, and how large they may grow.

A node prints into its file and never waits for anybody to read it, so that a launcher that is stopped
stops no node. The launcher looks into the files twice a second and shows warnings and worse, under the
node's name. A file that has grown too large is emptied; its last part is kept beside it.
"""

import re
from pathlib import Path

LOG_BYTES_MAX = 16 << 20
LOOK_BYTES_MAX = 1 << 20
LINE_CHARACTERS_MAX = 2_000
TAIL_LINES = 20

# `level='warning'` as the nodes write it, or `"level": "warning"` of a JSON line.
_LEVEL = re.compile(r"""\blevel["']?\s*[=:]\s*["']?(warning|error|critical)\b""")
_NOISE = re.compile(r"""(timestamp|level|node)=('[^']*'|\S+)\s*""")


class NodeLog:
    """One node's log file, read from where it was left."""

    def __init__(self, node: str, path: Path) -> None:
        """Read the file at `path`, which may not be there yet, as that node's."""
        self._node, self._path = node, path
        self._offset = 0
        self._rest = b""

    def warnings(self) -> list[str]:
        """Return new lines of level warning or worse, ready to show, and keep the file small."""
        lines = self._new_lines()
        if self._offset > LOG_BYTES_MAX:
            self._empty()
        return [f"{self._node}: {_for_people(line)}" for line in lines if _LEVEL.search(line)]

    def tail(self) -> str:
        """Return the file's last lines, to show beside an unexpected end."""
        if not self._path.is_file():
            return ""
        with self._path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOOK_BYTES_MAX))
            lines = file.read(LOOK_BYTES_MAX).decode("utf-8", "replace").splitlines()
        return "\n".join(line[:LINE_CHARACTERS_MAX] for line in lines[-TAIL_LINES:])

    def _new_lines(self) -> list[str]:
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(LOOK_BYTES_MAX)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-LINE_CHARACTERS_MAX:]
        return [line.decode("utf-8", "replace") for line in lines]

    def _empty(self) -> None:
        """The node appends, so that after this it goes on at the file's new end."""
        self._path.with_suffix(".log.old").write_text(self.tail())
        with self._path.open("r+b") as file:
            file.truncate(0)
        self._offset = 0


def _for_people(line: str) -> str:
    return _NOISE.sub("", line)[:LINE_CHARACTERS_MAX].strip()
