"""Timing of small parts: all in turn, many times, the least counts; the spread is shown beside it.

A part that is measured cold first reads a buffer larger than the caches, as a forward pass does between
two checks; only the part itself is timed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

CACHE_BYTES = 96 * 1024 * 1024


@dataclass(frozen=True)
class Part:
    """`run` does the work for `units` of `unit`, of which `share_units` fall into a step of `step_ms`."""

    name: str
    unit: str
    units: int
    run: Callable[[], Any]
    step: str
    step_ms: float
    share_units: float
    cold: bool = False
    calls: int = 1
    before: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Row:
    """One part's figures. Times are of one unit; `share` is of the step it belongs to."""

    name: str
    unit: str
    wall_us: float
    wall_max_us: float
    cpu_us: float
    step: str
    step_ms: float
    share_percent: float


def measure(parts: list[Part], repeats: int) -> list[Row]:
    """Run the parts in turn, `repeats` times after one warm-up."""
    trash = np.ones(CACHE_BYTES // 8)
    times: list[list[tuple[float, float]]] = [[] for _ in parts]
    for repeat in range(repeats + 1):
        for index, part in enumerate(parts):
            sample = _sample(part, trash)
            if repeat:
                times[index].append(sample)
    return [_row(part, samples) for part, samples in zip(parts, times, strict=True)]


def _sample(part: Part, trash: np.ndarray) -> tuple[float, float]:
    if part.before is not None:
        part.before()
    if part.cold:
        trash.sum()
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    for _ in range(part.calls):
        part.run()
    cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
    units = part.calls * part.units
    return wall / 1e3 / units, cpu / 1e3 / units


def _row(part: Part, samples: list[tuple[float, float]]) -> Row:
    walls, cpus = zip(*samples, strict=True)
    share = min(cpus) * part.share_units / (part.step_ms * 1e3)
    return Row(
        name=part.name,
        unit=part.unit,
        wall_us=round(min(walls), 3),
        wall_max_us=round(max(walls), 3),
        cpu_us=round(min(cpus), 3),
        step=part.step,
        step_ms=part.step_ms,
        share_percent=round(100 * share, 3),
    )


def table(rows: list[dict[str, Any]]) -> str:
    """Format rows (as dicts) as a Markdown table."""
    lines = [
        "| part | µs | max µs | CPU µs | a | share | of |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row['name']} | {row['wall_us']:,.1f} | {row['wall_max_us']:,.1f} | {row['cpu_us']:,.1f} "
        f"| {row['unit']} | {row['share_percent']:.3f} % | {row['step']} ({row['step_ms']:g} ms) |"
        for row in rows
    ]
    return "\n".join(lines)
