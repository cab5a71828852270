"""Tables of a profile, key by key: what each may hold, and an error that names file, line and key.

Rules it keeps:
- An unknown key is an error with a suggestion; a key that would hold a secret is refused with where it
  belongs.
- A bad value is an error that says what would be right, and quotes the value only where it is no secret.
"""

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, TypeVar

from kvfence.check.profile_file_lines import Lines
from kvfence.check.profile_file_lines import Path as KeyPath
from kvfence.protocol.errors import OperatorError
from kvfence.report import Place

T = TypeVar("T")
# Words for a secret itself, which no file holds.
_SECRETS = frozenset({"api_key", "apikey", "bearer", "credential", "key", "password", "secret", "token"})


class ProfileError(OperatorError):
    """Something in a profile cannot be used; `place` is where."""

    def __init__(self, what: str, place: Place) -> None:
        """`what` says what is wrong and what would be right."""
        super().__init__(f"{place.path}:{place.line}: {what}")
        self.place = place


class Source:
    """A profile's file: its name as the user wrote it, and where its keys stand."""

    def __init__(self, path: Path, text: str) -> None:
        """`text` is TOML that was read without an error."""
        self.path = path
        self._lines = Lines(text)

    def place(self, path: KeyPath) -> Place:
        """Return where a key stands."""
        return Place(path=str(self.path), line=self._lines.of(path))


class WrongError(Exception):
    """A value that its reader does not take; the message says what it must be."""


Reader = Callable[[object], T]


class Fields:
    """One table, whose keys are taken one by one."""

    def __init__(self, source: Source, table: Mapping[str, object], path: KeyPath, what: str) -> None:
        """`what` names the table in errors, as it is spelt in the file."""
        self._source = source
        self._table = table
        self._path = path
        self._what = what
        self._known: list[str] = []

    @property
    def place(self) -> Place:
        """Where the table begins."""
        return self._source.place(self._path)

    def has(self, name: str) -> bool:
        """Whether the key is given."""
        return name in self._table

    def take(self, name: str, reader: Reader[T]) -> T | None:
        """Return the value of a key as its reader has it, None where it is not given."""
        self._known.append(name)
        if name not in self._table:
            return None
        try:
            return reader(self._table[name])
        except WrongError as error:
            self.fail(name, f"`{name}` must be {error}")
        except ProfileError:
            raise
        except OperatorError as error:
            self.fail(name, str(error))

    def require(self, name: str, reader: Reader[T]) -> T:
        """Return the value of a key that has to be there."""
        found = self.take(name, reader)
        if found is None:
            raise ProfileError(f"{self._what} has no `{name}`; add it", self.place)
        return found

    def tables(self, name: str) -> list["Fields"]:
        """Return the tables of an array of tables."""
        self._known.append(name)
        listed = self._table.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(table, dict) for table in listed):
            self.fail(name, f"`{name}` must be tables: each begins with [[{self._dotted(name)}]]")
        return [
            Fields(self._source, table, (*self._path, name, index), f"[[{self._dotted(name)}]]")
            for index, table in enumerate(listed)
        ]

    def table(self, name: str) -> "Fields | None":
        """Return a table inside this one."""
        self._known.append(name)
        if name not in self._table:
            return None
        found = self._table[name]
        if not isinstance(found, dict):
            self.fail(name, f"`{name}` must be a table")
        return Fields(self._source, found, (*self._path, name), f"`{name}`")

    def done(self) -> None:
        """Refuse the keys that nobody took."""
        for name in self._table:
            if name in self._known:
                continue
            if name in _SECRETS:
                self.fail(
                    name, f"`{name}` would put a secret into a file; name it by `key_env` or `key_command`"
                )
            near = get_close_matches(name, self._known, n=1)
            advice = f"did you mean `{near[0]}`?" if near else f"known are: {', '.join(sorted(self._known))}"
            self.fail(name, f"{self._what} has an unknown key `{name}`; {advice}")

    def fail(self, name: str, what: str) -> NoReturn:
        """Raise the error of one key."""
        raise ProfileError(what, self._source.place((*self._path, name)))

    def _dotted(self, name: str) -> str:
        return ".".join([*(step for step in self._path if isinstance(step, str)), name])


def text(value: object) -> str:
    """Accept a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise WrongError("text that is not empty")
    return value


def texts(value: object) -> tuple[str, ...]:
    """Accept a list of texts."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        raise WrongError('a list of texts, such as ["one", "two"]')
    return tuple(value)


def boolean(value: object) -> bool:
    """Accept true and false."""
    if not isinstance(value, bool):
        raise WrongError(f"true or false, not {value!r}")
    return value


def count(value: object) -> int:
    """Accept a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WrongError(f"a whole number above 0, not {value!r}")
    return value


def amount(value: object) -> float:
    """Accept a number above 0."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:  # type: ignore[arg-type, operator]
        raise WrongError(f"a number above 0, not {value!r}")
    return float(value)  # type: ignore[arg-type]


def choice(*known: str) -> Reader[str]:
    """Accept one of a few words."""

    def read(value: object) -> str:
        if value not in known:
            near = get_close_matches(str(value), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise WrongError(f"one of {', '.join(known)}, not {value!r}{hint}")
        return str(value)

    return read


def choices(*known: str) -> Reader[tuple[str, ...]]:
    """Accept a list of some of a few words."""
    one = choice(*known)

    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise WrongError(f"a list of some of {', '.join(known)}")
        return tuple(one(word) for word in value)

    return read
