"""A trace as typed steps: what `kvfence serve --trace` wrote, line by line.

Rules: a line is read for itself, so that a trace of any length needs the memory of one line. A line that is
not whole was being written when its node was killed; whether that can be is judged where all lines were
seen (`conformance.py`). Everything else that no node writes is a violation, never skipped.

It knows the form of a line and nothing of what may follow what.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import Any

import msgspec

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.trace_read import read_command, read_event, read_key, read_name
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import AttemptId, LeaseId, Peer, Role

FORMATS = (1,)
_PREFIX = re.compile(rb'\{"node":"([^"]+)","incarnation":"(\d+)"')


@unique
class ViolationKind(Enum):
    """What is wrong with a trace."""

    UNREADABLE = "unreadable"  # no line of a trace
    ORDER = "order"  # a step is missing, comes twice or out of its order
    ROW = "row"  # the table has no such row
    STATE = "state"  # a row was taken in a state in which its record did not stand
    STEP = "step"  # a forward pass that was not launched is retired, or launched twice
    MESSAGE = "message"  # received, and never sent
    CLOSED = "closed"  # said twice, too early, or not kept
    CONTRACT = "contract"  # a row that began before its writer had closed and its seals were verified
    LEASED = "leased"  # a page that was not free, or an epoch that is not the next
    FREED = "freed"  # a page that somebody may still write to or read, or that nobody held
    END = "end"  # a request with two ends, an end without a request, an attempt without the last one's abort
    CORE = "core"  # the shipped core, told the same, does otherwise


@dataclass(frozen=True, slots=True)
class Place:
    """A line, counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong, where, and why."""

    kind: ViolationKind
    place: Place
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class RowTaken:
    """One row as a step says that it was taken; states, fact and action by their names."""

    key: int | LeaseId | AttemptId
    state: str
    fact: str
    next_state: str
    action: str


@dataclass(frozen=True, slots=True)
class Start:
    """A node's first line: what its core was made with."""

    place: Place
    peer: Peer
    role: Role
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a core. `shown_rows` and `shown_commands` are as the line has them."""

    place: Place
    peer: Peer
    number: int
    event: Event
    rows: tuple[RowTaken, ...]
    commands: tuple[Command, ...]
    shown_rows: list[Any]
    shown_commands: list[Any]
    published: Mapping[LeaseId, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Stop:
    """A node's last line: its trace is whole."""

    place: Place
    peer: Peer
    number: int


@dataclass(frozen=True, slots=True)
class Torn:
    """A line that was not written to its end; `peer` where that much of it is there."""

    place: Place
    peer: Peer | None


@dataclass(frozen=True, slots=True)
class Strange:
    """A whole line that no node writes."""

    place: Place
    why: str


Line = Start | Step | Stop | Torn | Strange


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    node: str
    incarnation: str
    role: Role
    step: int


class _Start(_Named, frozen=True, kw_only=True):
    start: dict[str, Any]


class _Stop(_Named, frozen=True, kw_only=True):
    end: str


class _Step(_Named, frozen=True, kw_only=True):
    ms: float
    event: str
    of: dict[str, Any]
    rows: list[tuple[str | int, str, str, str, str]]
    commands: list[tuple[str, dict[str, Any]]]
    published: dict[str, list[int]] = {}


class _Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    trace: int
    deployment: str
    version: str


def read_lines(paths: Iterable[Path]) -> Iterator[Line]:
    """Yield what every line of the files says, deployments' own lines left out. Raises OperatorError."""
    for path in paths:
        try:
            with path.open("rb") as file:
                for number, data in enumerate(file, start=1):
                    line = read_line(Place(str(path), number), data)
                    if line is not None:
                        yield line
        except OSError as error:
            raise OperatorError(
                f"the trace {path} cannot be read: {error.strerror}; name a file that "
                "kvfence serve --trace wrote"
            ) from error


def read_line(place: Place, data: bytes) -> Line | None:
    """Return what one line says; None for a blank one and for a deployment's own."""
    if not data.strip():
        return None
    try:
        shown = msgspec.json.decode(data)
    except msgspec.DecodeError:
        match = _PREFIX.match(data)
        peer = None if match is None else Peer(match[1].decode("utf-8", "replace"), int(match[2]))
        return Torn(place, peer)
    try:
        return _typed(place, shown)
    except (ValueError, msgspec.ValidationError) as error:
        return Strange(place, str(error))


def _typed(place: Place, shown: Any) -> Line | None:
    if not isinstance(shown, dict):
        raise ValueError("a line is an object")  # noqa: TRY004 -- one kind of error for what is unreadable
    if "trace" in shown:
        if msgspec.convert(shown, _Deployment).trace not in FORMATS:
            raise ValueError(f"this version reads traces of the formats {FORMATS} alone")
        return None
    if "start" in shown:
        first = msgspec.convert(shown, _Start)
        if first.step != 0:
            raise ValueError("a node's first line is its step 0")
        return Start(place, _peer(first), first.role, first.start)
    if "end" in shown:
        last = msgspec.convert(shown, _Stop)
        return Stop(place, _peer(last), last.step)
    return _step(place, msgspec.convert(shown, _Step), shown)


def _step(place: Place, line: _Step, shown: dict[str, Any]) -> Step:
    return Step(
        place=place,
        peer=_peer(line),
        number=line.step,
        event=read_event(line.event, line.of),
        rows=tuple(RowTaken(read_key(row[0]), *row[1:]) for row in line.rows),
        commands=tuple(read_command(kind, fields) for kind, fields in line.commands),
        shown_rows=shown["rows"],
        shown_commands=shown["commands"],
        published={read_name(LeaseId, k): tuple(pages) for k, pages in line.published.items()},
    )


def _peer(line: _Named) -> Peer:
    return Peer(line.node, int(line.incarnation))
