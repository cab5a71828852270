"""STYLE 5 and 6: files of about 300 lines at most, functions under 70.

Both tables are ratchets: what stands there was too long when it was written down, may only shrink, and its
entry is lowered when it has shrunk by some lines, or removed when it is short.
"""

import ast
from collections.abc import Iterator, Mapping

from tests.house.source import Module

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 320  # "about 300"
RATCHET_SLACK_LINES = 20
# place → lines
LONG_FILES: dict[str, int] = {}
# place:function → lines
LONG_FUNCTIONS: dict[str, int] = {}


def function_lengths(module: Module) -> Iterator[tuple[str, int]]:
    """(place:qualified name, lines) of every function; one inside another counts for both."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                if not isinstance(child, ast.ClassDef):
                    yield f"{module.place}:{name}", (child.end_lineno or child.lineno) - child.lineno + 1
            yield from walk(child, name)

    return walk(module.tree, "")


def file_lengths(module: Module) -> Iterator[tuple[str, int]]:
    """(place, lines) of the file."""
    yield module.place, len(module.text.splitlines())


def too_long(lengths: Mapping[str, int], most: int, known: Mapping[str, int]) -> Iterator[str]:
    """What is longer than allowed, and entries of the ratchet that are no longer true."""
    for name, lines in lengths.items():
        if lines > max(most, known.get(name, 0)):
            yield f"{name} has {lines} lines, more than {known.get(name, most)}: divide it"
    for name, lines in known.items():
        now = lengths.get(name)
        if now is None or now <= most:
            yield f"{name} is short now: take it out of the ratchet"
        elif now <= lines - RATCHET_SLACK_LINES:
            yield f"{name} has shrunk to {now} lines: lower its ratchet from {lines}"
