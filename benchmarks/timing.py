"""Compared variants, run in turn in one process, in alternating order; wall and CPU time of each run.

Rules: the least of the repeats is the figure, since whatever else the machine does can only add; the
median and most ÷ least say how far it did. CPU time is the process's own, all threads of it.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Spread:
    """The least, the median and the most of some repeats, in one unit."""

    least: float
    median: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Summarise `values`, of which there is at least one."""
        rounded = (round(value, 4) for value in (min(values), statistics.median(values), max(values)))
        return cls(*rounded, len(values))


@dataclass(frozen=True)
class Sample:
    """One run."""

    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class Timing:
    """What the runs of one variant took, in milliseconds."""

    wall_ms: Spread
    cpu_ms: Spread

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> "Timing":
        """Summarise some runs."""
        return cls(Spread.of([one.wall_ms for one in samples]), Spread.of([one.cpu_ms for one in samples]))


def timed(run: Callable[[], Any]) -> Sample:
    """Run once."""
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    run()
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    return Sample(wall / 1e6, cpu / 1e6)


def interleave(variants: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[Sample]]:
    """Run every variant `repeats` times, in turn; every second round in the opposite order."""
    samples: dict[str, list[Sample]] = {name: [] for name in variants}
    for number in range(repeats):
        names = list(variants) if number % 2 == 0 else list(reversed(variants))
        for name in names:
            samples[name].append(timed(variants[name]))
    return samples


@dataclass
class Meter:
    """CPU time of named parts, added up where they run: caches are as cold as the work around them left them.

    One thread's time; a reading costs well under a microsecond, which is counted as the part's.
    """

    cpu_ns: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Add what happens inside to `name`."""
        begun = time.thread_time_ns()
        yield
        self.cpu_ns[name] = self.cpu_ns.get(name, 0) + time.thread_time_ns() - begun

    def take(self) -> dict[str, int]:
        """Return what was added up, and begin again."""
        taken, self.cpu_ns = self.cpu_ns, {}
        return taken
