"""The file in which `kvfence verify --record` keeps what each scope came to.

A JSON object by scope. A scope that is searched again replaces what was kept of it, so a long run may be
ended and gone on with, scope by scope. `docs/make_verification.py` makes a table of it.
"""

import json
from pathlib import Path
from typing import Any

from kvfence.protocol.errors import OperatorError
from kvfence.verification import Report


def kept(path: Path) -> dict[str, Any]:
    """What a file holds; nothing where there is none. Raises OperatorError for one that is no such file."""
    if not path.exists():
        return {}
    try:
        outcomes = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OperatorError(f"{path} is no record of `kvfence verify`: {error}") from None
    if not isinstance(outcomes, dict):
        raise OperatorError(f"{path} is no record of `kvfence verify`: choose another file")
    return outcomes


def keep(path: Path, report: Report) -> None:
    """Put an outcome into the file."""
    outcomes = kept(path)
    outcomes[report.scope.name] = outcome(report)
    path.write_text(json.dumps(outcomes, indent=1) + "\n", encoding="utf-8")


def outcome(report: Report) -> dict[str, Any]:
    """What is kept of a search."""
    kept_: dict[str, Any] = {
        "ended": report.why.value,
        "states": report.states,
        "transitions": report.transitions,
        "depth": report.depth,
        "seconds": round(report.seconds, 1),
        "peak_mib": report.peak_mib,
    }
    homing, walks = report.homing, report.walks
    if homing is not None:
        kept_ |= {
            "stranded": homing.stranded_states,
            "rounds": homing.rounds,
            "left": homing.left,
            "timed": homing.timed,
            "livelock": homing.livelock is not None,
        }
    if walks is not None:
        kept_ |= {
            "last_layer": walks.states,
            "walked": walks.walked,
            "longest": walks.longest,
            "lost": walks.lost is not None,
        }
    return kept_
