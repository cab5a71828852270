"""Server-sent events, read as they come.

Rules it keeps:
- Bytes go in as the network cuts them: within a character, between CR and LF, within a line.
- Lines and events are bounded: a server that never ends a line is told apart from one that answers.
- What is no UTF-8 becomes replacement characters, and what follows is still read.
- An event that the end of the stream leaves without its blank line counts: some servers end so.

It knows nothing of what the events mean.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

LINE_CHARS_MAX = 4 << 20
EVENT_CHARS_MAX = 8 << 20


class EventTooLongError(Exception):
    """A line or an event has no end in sight."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its data lines joined by newlines, and its kind, `message` unless another is said."""

    data: str
    kind: str = "message"


class EventReader:
    """Turns bytes into events."""

    def __init__(self) -> None:
        """It has read nothing."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest: list[str] = []  # pieces of the line that has not ended
        self._rest_chars = 0
        self._skips_newline = False
        self._is_first = True
        self._data: list[str] = []
        self._data_chars = 0
        self._kind = "message"

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yield the events that this chunk ends. Raises EventTooLongError."""
        yield from self._read(self._decoder.decode(chunk))

    def close(self) -> Iterator[ServerEvent]:
        """Yield what the end of the stream leaves."""
        yield from self._read(self._decoder.decode(b"", final=True))
        if self._rest:
            yield from self._line("".join(self._rest))
            self._rest = []
        yield from self._dispatch()

    def _read(self, text: str) -> Iterator[ServerEvent]:
        if self._is_first and text:
            self._is_first = False
            text = text.removeprefix("\ufeff")
        if self._skips_newline and text:
            self._skips_newline = False
            text = text.removeprefix("\n")
        # A CR that ends the text may be half of a CRLF: the LF that follows is not a second line's end.
        self._skips_newline = text.endswith("\r") or (self._skips_newline and not text)
        pieces = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for piece in pieces[:-1]:
            self._keep(piece)
            line = "".join(self._rest)
            self._rest, self._rest_chars = [], 0
            yield from self._line(line)
        self._keep(pieces[-1])

    def _keep(self, piece: str) -> None:
        if piece:
            self._rest.append(piece)
            self._rest_chars += len(piece)
        if self._rest_chars > LINE_CHARS_MAX:
            raise EventTooLongError(f"a line of the stream is longer than {LINE_CHARS_MAX:,} characters")

    def _line(self, line: str) -> Iterator[ServerEvent]:
        if not line:
            yield from self._dispatch()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._data_chars += len(value) + 1
            if self._data_chars > EVENT_CHARS_MAX:
                raise EventTooLongError(
                    f"an event of the stream is longer than {EVENT_CHARS_MAX:,} characters"
                )
        elif name == "event":
            self._kind = value or "message"
        # Comments (an empty name), `id`, `retry` and names of the future say nothing about an answer.

    def _dispatch(self) -> Iterator[ServerEvent]:
        data, kind = self._data, self._kind
        self._data, self._data_chars, self._kind = [], 0, "message"
        if data:
            yield ServerEvent("\n".join(data), kind)
