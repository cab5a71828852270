"""A run as JSON lines: one event a line, in order, written as it happens. The source of truth of a run.

Rules it keeps:
- A line is out before the next thing happens: what a killed run has seen stands in its file.
- The file is its owner's alone (mode 0600): a finding can be somebody's breach.
- A file holds one run, and one process writes it: it is locked until it is closed.
- A line that cannot be read is an error with its number. Only the last line of a run that was ended in the
  middle of writing is told instead.
"""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, get_args

import msgspec

from kvfence.protocol.errors import OperatorError
from kvfence.report.events import FORMAT, AnyEvent, RunStarted

OWNER_ONLY = 0o600
KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(AnyEvent))
MIDDLE_OF_LINE = "the last line is cut off: the run was ended while it was written; all before it is here"


class _Kind(msgspec.Struct):
    """What kind of event a line holds."""

    event: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The events of a file. `cut` says what is missing at its end, if something is."""

    events: tuple[AnyEvent, ...]
    cut: str | None = None


class JsonLinesWriter:
    """Writes events as they happen. Owns the file that it opens; closes it on leaving."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder()

    @classmethod
    def to(cls, path: Path, *, goes_on: bool = False, replaces: bool = False) -> Self:
        """Open a new file; or one that a run left, to go on with it, less a last line that is cut off.

        What an earlier run left is replaced only where `replaces` says so. Raises OperatorError where it
        would be lost, and where the file cannot be written.
        """
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        except OSError as error:
            raise OperatorError(f"cannot write {path}: {error.strerror}; name another file") from error
        file = os.fdopen(number, "r+b")
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise OperatorError(
                f"{path} is being written by another run: wait for its end, or name another file"
            ) from error
        if stat.S_ISREG(os.fstat(number).st_mode):  # /dev/null is everybody's
            if os.fstat(number).st_size and not (goes_on or replaces):
                file.close()
                raise OperatorError(
                    f"{path} holds an earlier run, which may be evidence: name another file, or move it away"
                )
            os.fchmod(number, OWNER_ONLY)
            os.ftruncate(number, os.fstat(number).st_size if goes_on else 0)
        if goes_on:
            file.truncate(file.read().rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
        return cls(file)

    def write(self, event: AnyEvent) -> None:
        """Append one event; it has left this process when the call returns."""
        self._file.write(self._encoder.encode(event) + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file; nothing is written after that."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def as_lines(events: Iterable[AnyEvent]) -> str:
    """Return events as JSON lines."""
    encoder = msgspec.json.Encoder()
    return "".join(f"{encoder.encode(event).decode()}\n" for event in events)


def read_events(path: Path) -> Recorded:
    """Read a run's file. Raises OperatorError, with the line's number, for what is no run of this version."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"cannot read {path}: {error.strerror}; name the file of a run") from error
    return parse_events(data, str(path))


def parse_events(data: bytes, name: str) -> Recorded:
    """Read events from bytes. `name` is what errors call them. Raises OperatorError."""
    lines = data.split(b"\n")
    whole, rest = lines[:-1], lines[-1]
    events = list(_events(whole, name))
    cut = MIDDLE_OF_LINE if rest else None
    if not events:
        raise OperatorError(
            f"{name} holds no event: it is not the file of a run, or it ended before its start"
        )
    if not isinstance(events[0], RunStarted):
        raise OperatorError(f"{name}:1: a run begins with run_started: the beginning of the file is missing")
    if any(isinstance(event, RunStarted) for event in events[1:]):
        raise OperatorError(f"{name} holds the events of more than one run: divide it at each run_started")
    return Recorded(tuple(events), cut)


def _events(lines: Iterable[bytes], name: str) -> Iterator[AnyEvent]:
    decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _event(decoder, line, f"{name}:{number}")


def _event(decoder: msgspec.json.Decoder[AnyEvent], line: bytes, place: str) -> AnyEvent:
    try:
        event = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(_what_is_wrong(line, place, str(error))) from error
    if isinstance(event, RunStarted) and event.format > FORMAT:
        raise OperatorError(
            f"{place}: format {event.format} is from a newer kvfence ({event.version}): install that one"
        )
    return event


def _what_is_wrong(line: bytes, place: str, error: str) -> str:
    try:
        kind = msgspec.json.decode(line, type=_Kind).event
    except (msgspec.ValidationError, UnicodeDecodeError):
        return f"{place}: this JSON is no event of kvfence: name the file that --jsonl wrote"
    except msgspec.DecodeError:
        return f"{place}: this line is no JSON ({error}): the file was changed, or is not what --jsonl wrote"
    if kind not in KINDS:
        return f"{place}: the event {kind!r} is from a newer kvfence: install that one"
    return f"{place}: the event {kind!r} cannot be read ({error}): it was changed, or is from a newer kvfence"
