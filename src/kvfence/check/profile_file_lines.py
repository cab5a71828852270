"""On which line of a TOML file a key stands: what the standard library's reader does not keep.

Rules it keeps:
- It reads files that the real reader has accepted, and finds places; it interprets no value.
- A key inside of an inline table, or a place that it does not understand, is found at the nearest key around
  it.
"""

import re
from collections import Counter
from collections.abc import Iterator

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*\[(\[)?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_WORD = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
# A string of any kind, a comment, the beginning of a string that goes on, or a bracket.
_TOKEN = re.compile(
    r'"{3}.*?"{3}|\'{3}.*?\'{3}|"{3}|\'{3}|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]', re.DOTALL
)


class Lines:
    """Places of the keys of one file."""

    def __init__(self, text: str) -> None:
        """Read the whole text once."""
        self._places = dict(_places(text))

    def of(self, path: Path) -> int:
        """Return the line of a key, or of the nearest one around it; 1 for the file itself."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._places:
                return self._places[path[:length]]
        return 1


def _places(text: str) -> Iterator[tuple[Path, int]]:
    table: Path = ()
    counts: Counter[Path] = Counter()
    open_string: str | None = None
    depth = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if open_string is None and depth == 0:
            header = _HEADER.match(line)
            if header:
                table = _table(_words(header.group(2)), counts, is_array=bool(header.group(1)))
                yield table, number
                continue
            key = _KEY.match(line)
            if key:
                words = _words(key.group(1))
                yield from ((table + words[:length], number) for length in range(1, len(words) + 1))
        open_string, depth = _left_open(line, open_string, depth)


def _words(dotted: str) -> Path:
    return tuple(word.strip("\"'") for word in _WORD.findall(dotted))


def _table(words: Path, counts: Counter[Path], *, is_array: bool) -> Path:
    """Return the path of a header: each array of tables on the way stands for its last table."""
    path: Path = ()
    for position, word in enumerate(words):
        path += (word,)
        is_last = position == len(words) - 1
        if is_last and is_array:
            counts[path] += 1
        if path in counts:
            path += (counts[path] - 1,)
    return path


def _left_open(line: str, open_string: str | None, depth: int) -> tuple[str | None, int]:
    """Return the quotes of a string that goes on after this line, and how many brackets are open."""
    if open_string is not None:
        end = line.find(open_string)
        if end < 0:
            return open_string, depth
        line = line[end + 3 :]
    for token in _TOKEN.findall(line):
        if token in ('"""', "'''"):
            return token, depth
        if token in ("[", "{"):
            depth += 1
        elif token in ("]", "}"):
            depth = max(0, depth - 1)
    return None, depth
