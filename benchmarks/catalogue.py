"""The benchmarks by name: what runs them, and what shows their results."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks import figures
from benchmarks.figures import Figure, Result, Section
from benchmarks.simulator_figures import simulator_figures, simulator_section


@dataclass(frozen=True)
class Benchmark:
    """`sections` and `lines` turn its result into tables and README lines."""

    name: str
    sections: tuple[Callable[[Result], Section], ...]
    lines: Callable[[Result], list[Figure]] | None = None

    def run(self, *, quick: bool, **more: Any) -> Result:
        """Run it. Its module, and whatever that needs, is imported now."""
        result: Result = import_module(f"benchmarks.{self.name}").run(quick=quick, **more)
        return result

    def show(self, result: Result) -> list[Section]:
        """Its tables; where it could not run, why."""
        if "skipped" in result:
            return [Section(self.name, f"Not measured: {result['skipped']}")]
        return [section(result) for section in self.sections]

    def figures(self, result: Result) -> list[Figure]:
        """Its lines of the README's table."""
        return [] if self.lines is None or "skipped" in result else self.lines(result)


# A deployment comes first: it is what an operator sees, and the others only warm the machine up.
BENCHMARKS = (
    Benchmark("serving", (figures.serving_section,), figures.serving_figures),
    Benchmark(
        "fence_end_to_end",
        (figures.fence_section, figures.fence_parts_section),
        figures.fence_figures,
    ),
    Benchmark("plain_vs_paged", (figures.plain_section,), figures.plain_figures),
    Benchmark(
        "fence_parts",
        (
            figures.parts_section(
                "The fence's parts alone",
                "Without a model, caches cold; shares are of a faster machine's steps, the hard case.",
            ),
        ),
    ),
    Benchmark(
        "incident_size",
        (
            figures.parts_section(
                "Bookkeeping at the incident's size",
                "A pool of 2,040,000 tokens in pages of 16, a lease of 1,048,576; real ledger, seals and "
                "guard, no tensors, caches cold. Shares are of a short step, the hard case: one that "
                "attended over this pool would read 47 GB of keys and values of the small default model.",
            ),
        ),
        figures.incident_figures,
    ),
    Benchmark("transfer", (figures.transfer_section,)),
    Benchmark("simulator", (simulator_section,), simulator_figures),
    Benchmark("explorer", (figures.explorer_section,), figures.explorer_figures),
)
BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}
