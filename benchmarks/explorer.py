"""The explorer's pace: distinct states a second and bytes a state, beside TLC on the twin.

Rules: the correct protocol; wall time of whole searches, start and counting included; TLC is measured with
its start too, on the largest scope of the twin, and only where it is installed. Memory is the peak of all
processes of a search, which has the interpreter in it: bytes kept are what grows for good.

Run it: python -m benchmarks.explorer [--quick]
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvfence.protocol import Decisions
from kvfence.protocol.errors import OperatorError
from kvfence.verification import SCOPES, Limits, Report, search
from kvfence.verification.twin import find_tool, run_twin
from kvfence.verification.twin_scopes import TWIN_SCOPES

TWIN = Path(__file__).resolve().parents[1] / "twin"
CLOSING, WIDE = "leave-crash", "two-by-two"
QUICK_STATES = 2_000


def run(*, quick: bool) -> dict[str, Any]:
    """Search in one process and in all; then the twin, where there is a tool for it."""
    jobs = len(os.sched_getaffinity(0))
    limits = Limits(states_max=QUICK_STATES) if quick else Limits()
    rows = [
        _row(search(SCOPES[name], Decisions(), limits=limits, jobs=count), count)
        for name in (CLOSING, WIDE)
        for count in sorted({1, jobs})
    ]
    return {"rows": rows, "twin": None if quick else _twin()}


def _row(report: Report, jobs: int) -> dict[str, Any]:
    return {
        "name": report.scope.name,
        "processes": jobs,
        "states": report.states,
        "transitions": report.transitions,
        "seconds": round(report.seconds, 2),
        "states_per_second": round(report.states / report.seconds),
        "remembered_percent": round(100 * (1 - report.performed / report.transitions), 1),
        "kept_bytes_a_state": round(report.stored_bytes / report.states, 1),
        "peak_bytes_a_state": round(report.peak_mib * 2**20 / report.states),
    }


def _twin() -> dict[str, Any] | None:
    try:
        tool = find_tool()
    except OperatorError:
        return None
    runs = []
    for scope in TWIN_SCOPES:
        started = time.perf_counter()
        done = run_twin(TWIN, replace(scope), tool)
        runs.append((done.distinct_states or 0, time.perf_counter() - started, scope.name))
    states, seconds, name = max(runs)
    return {
        "name": name,
        "states": states,
        "seconds": round(seconds, 2),
        "states_per_second": round(states / seconds),
    }


def main() -> None:
    """Print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few thousand states, without the twin")
    print(json.dumps(run(quick=parser.parse_args().quick), indent=2))


if __name__ == "__main__":
    main()
