"""What the operator named on the command line: addresses, logs, saved answers, standard input.

Rules it keeps:
- What a file is, is seen from its content, not from its name: a saved JSON answer, a saved metrics page, or a
  log.
- A log is read as a stream, up to a bound that is said when it is met.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import msgspec

from kvfence.audit.deployment import PLAIN_URL, NodeSpec, is_url, secret_part, without_password
from kvfence.audit.log_blocks import Needles, blocks_of
from kvfence.audit.log_scan import Hits, LogScan, unwrapped, whose_in
from kvfence.audit.page import Page, page_of
from kvfence.audit.readers import GENERIC, READERS, all_forms, scan_of
from kvfence.protocol.errors import OperatorError

LOG_BYTES_MAX = 64 << 30
CHUNK_BYTES = 1 << 20
PAGE_BYTES_MAX = 16 << 20
WHOSE_MAX = 256  # pods or containers in one log
STDIN = "-"


@dataclass(frozen=True, slots=True)
class LogRead:
    """What one log, or one container's lines, left: by engine, its starts that speak, and their count.

    `replaced`: starts before those of the same identity, which nothing says ended. `doubt`: why there may be
    more in the log than was read, so that it is no pass.
    """

    name: str
    starts: Mapping[str, tuple[Hits, ...]]
    starts_seen: Mapping[str, int]
    notes: tuple[str, ...]
    replaced: Mapping[str, tuple[Hits, ...]] = field(default_factory=dict)
    doubt: str | None = None


def spec_of(target: str) -> NodeSpec:
    """Return the node that a word of the command line names. Raises OperatorError."""
    if target == STDIN:
        return NodeSpec(name="standard input", reads_stdin=True)
    if is_url(target):
        host = urlsplit(target).netloc.rpartition("@")[2]
        secret = secret_part(target)
        if secret is not None:
            raise OperatorError(f"{host} is given as a {secret}: {PLAIN_URL}")
        return NodeSpec(name=host, url=target)
    path = Path(target)
    if path.suffix == ".toml":
        raise OperatorError(f"{target} looks like a deployment: give it with --deployment {target}")
    if path.is_file():
        saved = is_saved(path)
        return NodeSpec(name=path.name, log=None if saved else path, saved=(path,) if saved else ())
    shown = without_password(target)
    if path.exists():
        raise OperatorError(f"{shown} is no file: name logs and saved answers one by one")
    if "://" not in target and ":" in target:
        raise OperatorError(f"{shown} is no file; if it is an address, write http://{shown}")
    raise OperatorError(
        f"{shown} is not there: name a URL, a log, a saved JSON answer, or - for standard input"
    )


def is_saved(path: Path) -> bool:
    """Whether a file is an answer that somebody saved: JSON, or Prometheus text; anything else is a log."""
    try:
        if path.stat().st_size > PAGE_BYTES_MAX:
            return False
        with path.open("rb") as file:
            return looks_saved(file.read(PAGE_BYTES_MAX))
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}; name a file that can") from error


def looks_saved(body: bytes) -> bool:
    """The same of its content."""
    start = body.lstrip()[:16]
    if start.startswith((b"# HELP ", b"# TYPE ")):
        return True
    if not start.startswith((b"{", b"[")):
        return False
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def read_saved(path: Path) -> Page:
    """Return a saved answer as a page. Raises OperatorError."""
    try:
        with path.open("rb") as file:
            return page_of(None, path.name, file.read(PAGE_BYTES_MAX))
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}; name a file that can") from error


def read_log(path: Path) -> tuple[LogRead, ...]:
    """Scan a log file. Raises OperatorError."""
    try:
        with path.open("rb") as file:
            return scan_stream(str(path), chunks_of(file))
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}; name a file that can") from error


def read_stream(stream: BinaryIO, name: str) -> tuple[tuple[Page, ...], tuple[LogRead, ...]]:
    """Standard input is a log, or one saved answer."""
    head = stream.read(PAGE_BYTES_MAX)
    if len(head) < PAGE_BYTES_MAX and looks_saved(head):
        return (page_of(None, name, head),), ()
    return (), scan_stream(name, (piece for pieces in ((head,), chunks_of(stream)) for piece in pieces))


def chunks_of(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream, piece by piece."""
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def scan_stream(name: str, chunks: Iterable[bytes], bytes_max: int = LOG_BYTES_MAX) -> tuple[LogRead, ...]:
    """Scan a stream; each pod or container whose lines are in it is a log of its own."""
    scans: dict[str | None, LogScan] = {}
    bound = _Bound(chunks, bytes_max)
    needles = Needles(all_forms().values())
    is_empty = True
    last = b""
    too_many: set[str] = set()
    for first, block in blocks_of(bound, is_cut_off=lambda: bound.is_cut):
        is_empty, last = False, block[-1:]
        for number, line in needles.lines_in(block, first):
            whose, text = unwrapped(line)
            scan = _scan_of(scans, name, whose)
            if scan is not None:
                scan.feed(text, number)
        for whose in sorted(whose_in(block)):  # also those who say nothing: they are nodes, and unknown
            if _scan_of(scans, name, whose) is None:
                too_many.add(whose)
    notes = (f"only the first {bytes_max:,} bytes were read",) if bound.is_cut else ()
    if not scans:
        scans[None] = scan_of(name)
    if is_empty:
        notes = (*notes, "it is empty")
    doubt = _doubt(len(too_many), ends_in_number=last.isdigit() and not bound.ends_in_newline)
    return tuple(_log_read(name, whose, scan, notes, doubt) for whose, scan in scans.items())


def _doubt(too_many: int, *, ends_in_number: bool) -> str | None:
    """Say why a log may hold more than was read of it."""
    if too_many:
        return f"{too_many} more pods or containers wrote into it than the {WHOSE_MAX} that were looked at"
    if ends_in_number:
        return "the log ends in the middle of a line, at a number that may go on: give it whole"
    return None


def _scan_of(scans: dict[str | None, LogScan], name: str, whose: str | None) -> LogScan | None:
    """The scan of somebody's lines; None when there are too many of them."""
    if whose not in scans and len(scans) < WHOSE_MAX:
        scans[whose] = scan_of(name)
    return scans.get(whose)


def _log_read(
    name: str, whose: str | None, scan: LogScan, notes: tuple[str, ...], doubt: str | None
) -> LogRead:
    readers = (*READERS, GENERIC)
    return LogRead(
        name if whose is None else whose,
        {reader.engine: scan.starts(reader.engine, reader.forms) for reader in readers},
        {reader.engine: scan.count_of_starts(reader.engine) for reader in readers},
        notes,
        {reader.engine: scan.replaced(reader.engine, reader.forms) for reader in readers},
        doubt,
    )


class _Bound:
    """Passes chunks on up to so many bytes."""

    def __init__(self, chunks: Iterable[bytes], bytes_max: int) -> None:
        self._chunks = chunks
        self._left = bytes_max
        self.is_cut = False
        self.ends_in_newline = True

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if len(chunk) > self._left:
                self.is_cut = True
                yield chunk[: self._left]
                return
            self._left -= len(chunk)
            self.ends_in_newline = chunk.endswith(b"\n")
            yield chunk
