"""Readers of single values in a request's body: each takes a path and a JSON value and returns it typed.

Rules it keeps:
- A value of the wrong type or out of range is a 400 that names the field by its path and says what is right.
- Nothing is coerced: `true` is no number, "5" is no integer, 5.0 is no integer.
- Numbers are finite, text is valid Unicode, every list and table has a named bound.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from kvfence.serving.errors import bad_field

T = TypeVar("T")
Reader = Callable[[str, object], T]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1


def boolean(path: str, value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise bad_field(path, f"must be true or false, not {describe(value)}", code="invalid_type")
    return value


def text(path: str, value: object) -> str:
    """Read a string of valid Unicode."""
    if not isinstance(value, str):
        raise bad_field(path, f"must be a string, not {describe(value)}", code="invalid_type")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise bad_field(path, f"has half a surrogate pair at character {error.start}") from error
    return value


def short_text(chars_max: int) -> Reader[str]:
    """Return a reader of a string that is not empty and not longer than `chars_max`."""

    def read(path: str, value: object) -> str:
        found = text(path, value)
        if not 1 <= len(found) <= chars_max:
            raise bad_field(path, f"must have 1 to {chars_max} characters, not {len(found)}")
        return found

    return read


def integer(low: int, high: int) -> Reader[int]:
    """Return a reader of an integer from `low` to `high`."""

    def read(path: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad_field(path, f"must be an integer, not {describe(value)}", code="invalid_type")
        if not low <= value <= high:
            raise bad_field(path, f"must be from {low} to {high}, not {describe(value)}")
        return value

    return read


def number(low: float, high: float, *, above: bool = False) -> Reader[float]:
    """Return a reader of a number from `low` (or `above` it) to `high`."""

    def read(path: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise bad_field(path, f"must be a number, not {describe(value)}", code="invalid_type")
        is_low = value <= low if above else value < low
        if math.isnan(value) or is_low or value > high:
            bound = f"above {low:g}" if above else f"at least {low:g}"
            raise bad_field(path, f"must be {bound} and at most {high:g}, not {describe(value)}")
        return float(value)

    return read


def items(path: str, value: object, items_max: int) -> list[object]:
    """Read a list of at most `items_max`."""
    if not isinstance(value, list):
        raise bad_field(path, f"must be a list, not {describe(value)}", code="invalid_type")
    if len(value) > items_max:
        raise bad_field(path, f"may have at most {items_max} entries, not {len(value)}")
    return value


def table(path: str, value: object, entries_max: int) -> dict[str, object]:
    """Read an object of at most `entries_max` entries."""
    if not isinstance(value, dict):
        raise bad_field(path, f"must be an object, not {describe(value)}", code="invalid_type")
    if len(value) > entries_max:
        raise bad_field(path, f"may have at most {entries_max} entries, not {len(value)}")
    return value


def list_of(reader: Reader[T], items_max: int) -> Reader[tuple[T, ...]]:
    """Return a reader of a list whose entries `reader` reads."""

    def read(path: str, value: object) -> tuple[T, ...]:
        return tuple(
            reader(f"{path}[{index}]", item) for index, item in enumerate(items(path, value, items_max))
        )

    return read


def describe(value: object) -> str:
    """Name a JSON value for an error: its kind, and the value itself where it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 1 << 64 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float) and math.isinf(value):
        return "a number too large to read"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return f"a string of {len(value)} characters"
    return "a list" if isinstance(value, list) else "an object"


class Fields:
    """Optional and required reading from one object."""

    def __init__(self, body: Mapping[str, object], path: str = "") -> None:
        self._body = body
        self._path = path

    def get(self, name: str, reader: Reader[T]) -> T | None:
        """Read a field, or return None where it was not given."""
        value = self._body.get(name)
        return None if value is None else reader(f"{self._path}{name}", value)

    def require(self, name: str, reader: Reader[T]) -> T:
        """Read a field that must be there."""
        value = self.get(name, reader)
        if value is None:
            raise bad_field(
                f"{self._path}{name}", "is missing; it is required", code="missing_required_parameter"
            )
        return value
