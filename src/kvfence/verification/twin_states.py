"""Reads the states that TLC writes down, so that they can be compared one by one and not only counted.

A value becomes what it is in Python, always immutable: a number, a truth value, a string; a sequence is a
tuple, a set a frozenset, a record or a function a `Mapped` (sorted pairs). `project` (`projection.py`) makes
the same of a world: equality of states is equality of these.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from kvfence.protocol.errors import InternalError

Value: TypeAlias = "int | bool | str | tuple[Value, ...] | frozenset[Value] | Mapped"


class Mapped(NamedTuple):
    """A record or function: its pairs, sorted by key. Unlike a tuple it never equals a sequence."""

    pairs: tuple[tuple[int | str, Value], ...]
    kind: str = "map"


State: TypeAlias = tuple[tuple[str, Value], ...]  # (variable, value), sorted by variable

_TOKEN = re.compile(r'\s*("[^"]*"|<<|>>|\|->|:>|@@|/\\|-?\d+|\w+|[\[\]{}(),=])')
_STATE = re.compile(r"^State \d+:$", re.MULTILINE)


def mapped(values: Mapping[int | str, Value]) -> Mapped:
    """Build the value of a record or function."""
    return Mapped(tuple(sorted(values.items(), key=lambda pair: (str(type(pair[0])), pair[0]))))


def state(values: Mapping[str, Value]) -> State:
    """Build a state from its variables."""
    return tuple(sorted(values.items()))


def read_states(text: str) -> Iterator[State]:
    """Return every state of a dump."""
    for part in _STATE.split(text)[1:]:
        yield _Reader(part).state()


def read_value(text: str) -> Value:
    """Return one value."""
    return _Reader(text).value()


class _Reader:
    """A reader of one state, from left to right."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def state(self) -> State:
        values: dict[str, Value] = {}
        while self._at < len(self._tokens):
            if self._peek() == "/\\":
                self._take("/\\")
            name = self._next()
            self._take("=")
            values[name] = self.value()
        return state(values)

    def value(self) -> Value:
        word = self._next()
        if word == "<<":
            return tuple(self._listed(">>"))
        if word == "{":
            return frozenset(self._listed("}"))
        if word == "[":
            return self._pairs("|->", ",", "]")
        if word == "(":
            return self._pairs(":>", "@@", ")")
        if word in ("TRUE", "FALSE"):
            return word == "TRUE"
        return word[1:-1] if word.startswith('"') else _number(word)

    def _listed(self, end: str) -> Iterable[Value]:
        values = []
        while self._peek() != end:
            values.append(self.value())
            if self._peek() == ",":
                self._take(",")
        self._take(end)
        return values

    def _pairs(self, arrow: str, between: str, end: str) -> Mapped:
        values: dict[int | str, Value] = {}
        while self._peek() != end:
            key = self._next()
            name: int | str = key.strip('"') if not key.lstrip("-").isdigit() else int(key)
            self._take(arrow)
            values[name] = self.value()
            if self._peek() == between:
                self._take(between)
        self._take(end)
        return mapped(values)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _take(self, expected: str) -> None:
        word = self._next()
        if word != expected:
            raise InternalError(f"TLC wrote {word!r} where {expected!r} was expected")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    rest = text.rstrip()
    while at < len(rest):
        found = _TOKEN.match(rest, at)
        if found is None:
            raise InternalError(f"TLC wrote something that is no value: {rest[at : at + 40]!r}")
        yield found.group(1)
        at = found.end()


def _number(word: str) -> int:
    if not word.lstrip("-").isdigit():
        raise InternalError(f"TLC wrote {word!r} where a value was expected")
    return int(word)
