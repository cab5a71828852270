"""Where in a TOML file a table or key stands: the standard library's reader does not say.

It reads headers and keys alone, and skips texts of several lines; it is asked for files that the real reader
has taken. What it cannot find stands on the line of its table, or on line 1.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?")
_KEY = re.compile(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]")
_QUOTES = ('"""', "'''")


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines by (table, index of the table, key); the key None is the table's header."""

    by_place: Mapping[tuple[str, int, str | None], int]

    def of(self, table: str, index: int, key: str | None = None) -> int:
        """The line of a key, else of its table, else 1."""
        return self.by_place.get((table, index, key), self.by_place.get((table, index, None), 1))


def lines_in(text: str) -> Lines:
    """Return where the tables and keys of a file stand."""
    found: dict[tuple[str, int, str | None], int] = {}
    counts: dict[str, int] = {}
    table, inside = "", False
    for number, line in enumerate(text.splitlines(), start=1):
        was_inside = inside
        if sum(line.count(quotes) for quotes in _QUOTES) % 2:
            inside = not inside
        if was_inside:
            continue
        header, key = _HEADER.fullmatch(line.partition("#")[0].rstrip()), _KEY.match(line)
        if header is not None:
            table = header[2].partition(".")[0]
            if header[1] == "[[" or table not in counts:
                counts[table] = counts.get(table, -1) + 1
            found.setdefault((table, counts[table], None), number)
        elif key is not None:
            found.setdefault((table, counts.get(table, 0), key[1]), number)
    return Lines(found)
