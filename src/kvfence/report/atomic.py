"""Writing a report's file whole or not at all: a reader never meets half of one.

Rules it keeps: the file is its owner's alone (mode 0600), and what stood there before stands until the new
one is complete.
"""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from kvfence.protocol.errors import OperatorError


def check_places(paths: Iterable[Path]) -> None:
    """Raise OperatorError for a file that could not be written: said before a run, not after it."""
    for path in paths:
        if path.is_dir():
            raise OperatorError(f"cannot write {path}: it is a directory; name a file")
        if not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            raise OperatorError(f"cannot write {path}: {path.parent} is no writable directory; name another")


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` by a file with this text. Raises OperatorError where it cannot be written."""
    try:
        number, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}; name another place") from error
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(fresh).replace(path)
    except OSError as error:
        Path(fresh).unlink(missing_ok=True)
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
