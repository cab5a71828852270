"""A log in blocks of whole lines, and the lines in them that may say something.

Nearly all lines of a long log say nothing to an audit. They are passed over a megabyte at a time, by looking
for the literal needles of all forms; only lines with one of them are taken apart.

Rules it keeps:
- A line that is longer than LINE_BYTES_MAX is cut before that, between words, and the end of a stream that
  was cut off is no line: a number that was cut in the middle is another number.
- Colours are taken away before anything is looked for.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from kvfence.audit.log_scan import Form

LINE_BYTES_MAX = 65_536

_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def blocks_of(
    chunks: Iterable[bytes], *, is_cut_off: Callable[[], bool] = lambda: False
) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, whole lines without the last newline) of a stream.

    `is_cut_off`, asked at the end, says that the stream does not end there.
    """
    rest, number, is_skipping = b"", 1, False
    for chunk in chunks:
        piece = chunk
        if is_skipping:
            _, newline, piece = chunk.partition(b"\n")
            if not newline:
                continue
            number, is_skipping = number + 1, False
        lines, newline, rest = (rest + piece).rpartition(b"\n")
        if newline:
            yield number, lines
            number += lines.count(b"\n") + 1
        if len(rest) > LINE_BYTES_MAX:
            yield number, _cut(rest)
            rest, is_skipping = b"", True
    if rest and not is_skipping and not is_cut_off():
        yield number, rest


class Needles:
    """The literal parts of all forms. One that only marks an engine is looked for once a block."""

    def __init__(self, forms: Iterable[Sequence[Form]]) -> None:
        often: dict[bytes, bool] = {}
        for several in forms:
            for form in several:
                needle = form.needle.encode()
                says_something = bool(form.pattern.groupindex) or form.is_start
                often[needle] = often.get(needle, False) or says_something
        self._often = often

    def lines_in(self, block: bytes, first: int) -> Iterator[tuple[int, str]]:
        """(number, line) of the lines in a block that have a needle; `first` numbers the block's first."""
        plain = _ANSI.sub(b"", block) if b"\x1b" in block else block
        starts: set[int] = set()
        for needle, is_often in self._often.items():
            starts.update(_lines_with(plain, needle, is_often=is_often))
        number, counted = first, 0
        for start in sorted(starts):
            number += plain.count(b"\n", counted, start)
            counted = start
            end = plain.find(b"\n", start)
            yield number, _cut(plain[start : len(plain) if end < 0 else end]).decode("utf-8", "replace")


def _lines_with(block: bytes, needle: bytes, *, is_often: bool) -> Iterator[int]:
    """Where the lines begin that have the needle."""
    at = block.find(needle)
    while at >= 0:
        yield block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        if end < 0 or not is_often:
            return
        at = block.find(needle, end)


def _cut(line: bytes) -> bytes:
    return line if len(line) <= LINE_BYTES_MAX else line[:LINE_BYTES_MAX].rpartition(b" ")[0]
