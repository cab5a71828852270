"""Back from plain data to events and commands: what `trace.py` has shown, typed again.

What was hidden comes back as a placeholder: no text, no hash, as many tokens of number 0 as there were. So
a step that was read can be taken again by a core, and what the core says compared, shown, with what was
shown. Raises ValueError, which says where, for what no step can have shown, whatever is wrong with it.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, get_args, get_origin

from kvfence.protocol.trace import HIDDEN, SHOWN_AS_COUNT, SHOWN_AS_PRESENCE
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer

Kind = TypeVar("Kind")

PLACEHOLDERS: Mapping[str, object] = MappingProxyType({"token_hash": b"", "domain": "", "detail": ""})
EVENTS: Mapping[str, type] = MappingProxyType({kind.__name__: kind for kind in get_args(Event)})
COMMANDS: Mapping[str, type] = MappingProxyType({kind.__name__: kind for kind in get_args(Command)})

# How a name is written: what stands between its parts, and what they are.
_NAMES: Mapping[type, tuple[str, tuple[type, ...]]] = MappingProxyType(
    {
        Peer: ("/", (str, int)),
        LeaseId: (".", (int, int)),
        AttemptId: (".", (int, int, int)),
        PageRef: ("@", (int, int)),
    }
)


def read_event(kind: str, shown: object) -> Event:
    """Return the event that was shown. Raises ValueError."""
    if kind not in EVENTS:
        raise ValueError(f"there is no event {kind!r}")
    event: Event = read_fields(EVENTS[kind], shown)
    return event


def read_command(kind: str, shown: object) -> Command:
    """Return the command that was shown. Raises ValueError."""
    if kind not in COMMANDS:
        raise ValueError(f"there is no command {kind!r}")
    command: Command = read_fields(COMMANDS[kind], shown)
    return command


def read_key(shown: object) -> int | LeaseId | AttemptId:
    """Return the key of a row: a request, a lease or an attempt. Raises ValueError."""
    if isinstance(shown, int) and not isinstance(shown, bool):
        return shown
    if _fits(LeaseId, shown):
        return read_name(LeaseId, shown)
    if _fits(AttemptId, shown):
        return read_name(AttemptId, shown)
    raise ValueError(f"{shown!r} names no request, lease or attempt")


def read_name(kind: type[Kind], shown: object) -> Kind:
    """Return a peer, lease, attempt or page reference. Raises ValueError."""
    words = _words(kind, shown)
    if words is None:
        raise ValueError(f"{shown!r} names no {kind.__name__}")
    return kind(*(part(word) for part, word in zip(_NAMES[kind][1], words, strict=True)))


def _words(kind: type, shown: object) -> list[str] | None:
    """Return the parts of a name of this kind, or None for anything else."""
    between, parts = _NAMES[kind]
    words = shown.rsplit(between, len(parts) - 1) if isinstance(shown, str) else []
    fits = len(words) == len(parts) and all(
        word and (part is str or (word.isascii() and word.isdecimal()))
        for part, word in zip(parts, words, strict=True)
    )
    return words if fits else None


def read_fields(kind: type[Any], shown: object) -> Any:
    """Return a dataclass of this type. Raises ValueError for a field that is missing, strange or too much."""
    if not isinstance(shown, dict):
        raise ValueError(f"a {kind.__name__} is shown by its fields, not as {shown!r}")  # noqa: TRY004
    known = {field.name for field in fields(kind)} - HIDDEN
    if set(shown) != known:
        odd = ", ".join(sorted(set(shown) ^ known))
        raise ValueError(f"a {kind.__name__} has not the fields that are shown: {odd}")
    return kind(**{field.name: _read_field(kind, field.name, field.type, shown) for field in fields(kind)})


def _read_field(kind: type, name: str, hint: Any, shown: Mapping[str, object]) -> object:
    if name in HIDDEN:
        return PLACEHOLDERS[name]
    value = shown[name]
    if (kind.__name__, name) in SHOWN_AS_COUNT:
        return (0,) * _read_int(value)
    if name in SHOWN_AS_PRESENCE:
        return 0 if value is True else None
    try:
        return _read(hint, value)
    except ValueError as error:
        raise ValueError(f"{kind.__name__}.{name}: {error}") from None


def _read(hint: Any, value: object) -> object:
    if isinstance(hint, UnionType):
        return _read_one_of(get_args(hint), value)
    if get_origin(hint) is tuple:
        return _read_tuple(get_args(hint), value)
    if hint in _NAMES:
        return read_name(hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if is_dataclass(hint) and isinstance(hint, type):
        return read_fields(hint, value)
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int:
        return _read_int(value)
    raise ValueError(f"{value!r} is not what stands there")


def _read_int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value


def _read_tuple(hints: tuple[Any, ...], value: object) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list")  # noqa: TRY004
    if hints[-1] is Ellipsis:
        return tuple([_read(hints[0], one) for one in value])
    if len(value) != len(hints):
        raise ValueError(f"{value!r} has not {len(hints)} entries")
    return tuple([_read(hint, one) for hint, one in zip(hints, value, strict=True)])


def _read_one_of(hints: tuple[Any, ...], value: object) -> object:
    """Read the one arm of a union that the value fits: arms differ in their shape or their fields."""
    if value is None and type(None) in hints:
        return None
    for hint in hints:
        if _fits(hint, value):
            return _read(hint, value)
    raise ValueError(f"{value!r} is none of what may stand there")


def _fits(hint: Any, value: object) -> bool:
    if hint in _NAMES:
        return _words(hint, value) is not None
    if get_origin(hint) is tuple:
        return isinstance(value, list)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return isinstance(value, str)
    return isinstance(value, dict) and set(value) == _shown_names(hint)


@cache
def _shown_names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind)) - HIDDEN if is_dataclass(kind) else frozenset()
