"""Words of others, fit to be shown: a server's text can hold escape codes and tricks of direction.

Rules it keeps: what is shown is one line of printable characters; what was taken out leaves a mark.
"""

from collections.abc import Iterable

MARK = "\N{REPLACEMENT CHARACTER}"


def plain(words: object) -> str:
    """Return the words on one line, with every unprintable character replaced by a mark."""
    line = " ".join(str(words).split())
    return "".join(letter if letter.isprintable() else MARK for letter in line)


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def listed(words: Iterable[object]) -> str:
    """Words with commas between them."""
    return ", ".join(plain(word) for word in words)


def figure(value: float | str | bool | None) -> str:  # noqa: FBT001 (a figure of a server may be one)
    """A figure for people: thousands apart, a few digits, words for truth and for nothing."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    return plain(value)
