"""`make bench`: run the benchmarks, show their tables, keep their results.

Results go to benchmarks/out, a file a benchmark. With --write-readme the table in the README (between its
markers) and docs/figures.md are made anew from the files of full runs, today's and earlier ones.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from benchmarks import page
from benchmarks.catalogue import BENCHMARKS, BY_NAME, Benchmark
from benchmarks.figures import FIGURE_COLUMNS, Figure, Section
from benchmarks.machine import describe_machine, one_line
from rich import box
from rich.console import Console
from rich.table import Table

USAGE_ERROR = 2
FILE_COLUMNS = 130  # in a file or a log, where nothing says how wide it is


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line names; 0, or 2 where it makes no sense."""
    options = _parser().parse_args(arguments)
    if options.quick and options.write_readme:
        print("--write-readme shows full runs only: leave --quick away", file=sys.stderr)
        return USAGE_ERROR
    # One thread, as each node of a deployment has here; OpenMP reads this when torch is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=FILE_COLUMNS)
    for name in options.only or BY_NAME:
        _run(BY_NAME[name], console, quick=options.quick)
    if options.write_readme:
        _write(console)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats: a look, not a figure")
    parser.add_argument(
        "--only", action="append", choices=[one.name for one in BENCHMARKS], help="repeatable"
    )
    parser.add_argument("--write-readme", action="store_true", help="renew README.md and docs/figures.md")
    return parser


def _run(benchmark: Benchmark, console: Console, *, quick: bool) -> None:
    console.print(f"[bold]{benchmark.name}[/bold] …")
    machine = describe_machine()
    result = benchmark.run(quick=quick)
    path = page.save({"name": benchmark.name, "quick": quick, "machine": machine, "result": result})
    for section in benchmark.show(result):
        _show(section, console)
    lines = benchmark.figures(result)
    if lines:
        _show(Section("Figures", "", FIGURE_COLUMNS, tuple(_plain(line) for line in lines)), console)
    console.print(f"[dim]{one_line(machine)}; kept in {path.relative_to(page.ROOT)}[/dim]\n")


def _plain(line: Figure) -> tuple[str, ...]:
    return tuple(cell.replace("`", "").replace("*", "") for cell in line.cells)


def _show(section: Section, console: Console) -> None:
    if section.note:
        console.print(f"[bold]{section.title}[/bold]. {section.note}", markup=True)
    if not section.rows:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(section.columns):
        table.add_column(column, overflow="fold", justify="left" if number < 2 else "right")
    for row in section.rows:
        table.add_row(*row)
    console.print(table)


def _write(console: Console) -> None:
    records = page.load()
    page.write_page(records)
    if page.write_readme(records):
        console.print("README.md and docs/figures.md are new")
    else:
        console.print(f"docs/figures.md is new; README.md has no {page.BEGIN} … {page.END} to fill")


if __name__ == "__main__":
    sys.exit(main())
