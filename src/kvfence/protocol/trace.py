"""A step of a core as plain data: what a trace keeps of an event, the rows taken, and the commands.

Rules:
- Names are strings that say what they are: a peer `decode-0/17`, a lease `17.4`, an attempt `12.7.1`, a
  page under its epoch `5@3`. Incarnations need 61 bits, more than a JSON number surely holds.
- What a prompt or an answer could be learnt from is never shown: token ids, hashes of them, domains, free
  text. Of token ids their count is shown, of a first token that there is one.
- Everything else is shown, so that a step can be taken again (`trace_read.py`).

It writes nothing: `kvfence.serving.trace` does.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from kvfence.protocol.errors import unreachable
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer

if TYPE_CHECKING:
    from kvfence.protocol.tables import Transition

Plain = Any  # what JSON has: mypy's lists are invariant, so that saying it in full would need copies

# Fields by name. A hidden one leaves no mark; of the others only what is said here is shown.
HIDDEN = frozenset({"token_hash", "domain", "detail"})
SHOWN_AS_COUNT = frozenset({("Prefill", "tokens"), ("StartPrefill", "tokens")})
SHOWN_AS_PRESENCE = frozenset({"first_token"})


def show_step(
    event: Event, trail: Iterable["Transition"], commands: Sequence[Command]
) -> tuple[str, dict[str, Plain], list[Plain], list[Plain]]:
    """Return the event's type and fields, the rows taken, and each command as [type, fields]."""
    said = [[type(command).__name__, show_fields(command)] for command in commands]
    return type(event).__name__, show_fields(event), [*map(show_row, trail)], said


def show_row(row: "Transition") -> Plain:
    """One row that was taken: [key, state, fact, next state, action]."""
    return [show(row.key), row.state.name, row.fact.name, row.next_state.name, row.action]


def show_fields(thing: Any) -> dict[str, Plain]:
    """Return what is shown of a dataclass, by field."""
    return {name: view(getattr(thing, name)) for name, view in _views(thing.__class__)}


def show(value: object) -> Plain:
    """Return one value as plain data. Text and bytes that are no name of ours have no place in a trace."""
    if value is None or isinstance(value, bool | int):
        return value
    word = _WORDS.get(type(value))
    if word is not None:
        return word(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return [show(one) for one in value]
    if not is_dataclass(value):
        unreachable(f"a {type(value).__name__} has no place in a trace")
    return show_fields(value)


_WORDS: dict[type, Callable[[Any], str]] = {
    Peer: lambda peer: f"{peer.node}/{peer.incarnation}",
    LeaseId: lambda lease: f"{lease.incarnation}.{lease.sequence}",
    AttemptId: lambda attempt: f"{attempt.incarnation}.{attempt.request}.{attempt.number}",
    PageRef: lambda ref: f"{ref.page}@{ref.epoch}",
}


@cache
def _views(kind: Any) -> tuple[tuple[str, Callable[[Any], Plain]], ...]:
    """How each shown field of a type is shown."""
    views: list[tuple[str, Callable[[Any], Plain]]] = []
    for field in fields(kind):
        if field.name in HIDDEN:
            continue
        if (kind.__name__, field.name) in SHOWN_AS_COUNT:
            views.append((field.name, len))
        elif field.name in SHOWN_AS_PRESENCE:
            views.append((field.name, _is_there))
        else:
            views.append((field.name, show))
    return tuple(views)


def _is_there(value: object) -> bool:
    return value is not None
