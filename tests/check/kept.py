"""The file of what was measured: every run of a control, kept as soon as it is over.

Rules it keeps: a run changes one line of the file; several processes may add to it at once, and none loses
what another has added; it is replaced whole, so that no reader meets half of it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.check.controls import HARD, Played

from kvfence.report import Verdict
from kvfence.report.atomic import write_atomically

READABLE = 0o644
PARTS = ("fake", "healthy", "engine", "engine_healthy")
# What is kept of a run beside its finding: verdicts that say something.
TOLD = frozenset((*(one.value for one in HARD), Verdict.EXPOSED.value, Verdict.INCONCLUSIVE.value))

Data = dict[str, Any]  # part → name → column → seed → run


def read_data(path: Path) -> Data:
    """What was measured so far."""
    data: Data = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {part: data.get(part, {}) for part in PARTS}


def is_there(path: Path, part: str, name: str, column: str, seed: int) -> bool:
    """Whether this run was made already."""
    return str(seed) in read_data(path)[part].get(name, {}).get(column, {})


def keep(path: Path, part: str, name: str, column: str, played: Played) -> None:
    """Add one run to the file."""
    with _alone(path):
        data = read_data(path)
        data[part].setdefault(name, {}).setdefault(column, {})[str(played.seed)] = as_run(played)
        _write(path, data)


def merge(path: Path, other: Path) -> int:
    """Add the runs of another file that this one has not; return how many."""
    added = 0
    with _alone(path):
        data = read_data(path)
        for part, names in read_data(other).items():
            for name, columns in names.items():
                for column, runs in columns.items():
                    mine = data[part].setdefault(name, {}).setdefault(column, {})
                    fresh = {seed: run for seed, run in runs.items() if seed not in mine}
                    mine.update(fresh)
                    added += len(fresh)
        _write(path, data)
    return added


def drop(path: Path, part: str) -> None:
    """Forget the runs of a part."""
    with _alone(path):
        _write(path, {**read_data(path), part: {}})


def as_run(played: Played) -> dict[str, Any]:
    """A run as it stands in the file."""
    run = {
        "found": played.scenario,
        "verdict": played.verdict,
        "codes": sorted(set(played.codes)),
        "requests": played.requests,
        "seconds": played.seconds,
        "verdicts": {name: verdict for name, verdict in sorted(played.ended.items()) if verdict in TOLD},
    }
    more = {"limit_s": played.limit_s, "moved": played.moved}
    return {**run, **{name: value for name, value in more.items() if value is not None}}


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else changes the file meanwhile. Its directory is what is locked: the file is replaced."""
    number = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _write(path: Path, data: Data) -> None:
    write_atomically(path, as_text(data))
    path.chmod(READABLE)


def as_text(data: Data) -> str:
    """One line for each cell."""
    parts = []
    for part, names in sorted(data.items()):
        rows = [
            f"{json.dumps(name)}: {{\n"
            + ",\n".join(f" {json.dumps(column)}: {_cell(cells[column])}" for column in sorted(cells))
            + "\n}"
            for name, cells in sorted(names.items())
        ]
        parts.append(f"{json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _cell(cell: dict[str, Any]) -> str:
    return json.dumps(dict(sorted(cell.items(), key=lambda item: int(item[0]))), separators=(",", ":"))
