"""`python -m tests.mutants`: try mutants of the tables, print the score, write docs/mutants.md.

Exit 0 when every mutant is killed or listed as equivalent, 1 when one survives or the list is wrong, 2 when
nothing could be tried. Only a full run writes the page.
"""

import argparse
import os
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.mutants import equivalents
from tests.mutants.killers import explorer_kills
from tests.mutants.mutations import Mutation, all_mutations, chosen
from tests.mutants.page import PAGE, page
from tests.mutants.runner import Fate, RigError, Verdict, try_mutations

SAMPLE_STRIDE = (
    41  # about thirty mutants, over all tables and kinds; prime, so that it falls in step with none
)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="a role, a row (decode:RESERVED/ABORT) or one mutant (decode:RESERVED/ABORT drop); repeatable",
    )
    parser.add_argument("--sample", action="store_true", help=f"every {SAMPLE_STRIDE}th mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried at once")
    parser.add_argument("--verbose", action="store_true", help="say of each mutant what killed it")
    return parser.parse_args()


def watched(mutations: list[Mutation], jobs: int, console: Console, *, verbose: bool) -> list[Verdict]:
    """Try the mutations under a progress bar; survivors are named at once."""
    columns = (TextColumn("mutants"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("mutants", total=len(mutations))

        def report(verdict: Verdict) -> None:
            progress.advance(task)
            if verbose or verdict.fate is Fate.SURVIVED:
                killer = f", by {verdict.killer}" if verdict.killer else ""
                progress.print(f"{verdict.mutation}: {verdict.fate.value}{killer}", markup=False)

        return try_mutations(mutations, report, jobs=jobs, second=explorer_kills)


def summary(verdicts: list[Verdict], faults: int) -> str:
    """Say the score of this run in a line."""
    killed = sum(verdict.fate is not Fate.SURVIVED for verdict in verdicts)
    hung = sum(verdict.fate is Fate.HUNG for verdict in verdicts)
    equivalent = len(verdicts) - killed
    ends = f"{killed:,} killed" + (f" ({hung} of them hung)" if hung else "")
    percent = 100 * killed / max(1, len(verdicts) - equivalent * (not faults))
    return f"{len(verdicts):,} mutants: {ends}, {equivalent} not: {percent:.1f} %" + (
        " less the equivalent ones" if equivalent and not faults else ""
    )


def main() -> int:
    """Try what was asked for."""
    asked, console = arguments(), Console(stderr=True)
    everything = all_mutations()
    try:
        reasons = equivalents.read()
        faults = list(equivalents.strangers(reasons, everything))
        mutations = chosen(everything, asked.only) if asked.only else everything
        mutations = mutations[::SAMPLE_STRIDE] if asked.sample else mutations
        verdicts = watched(mutations, max(1, asked.jobs), console, verbose=asked.verbose)
    except (ValueError, RigError) as error:
        print(f"No mutant was tried: {error}", file=sys.stderr)
        return 2
    faults += equivalents.faults(reasons, verdicts)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(summary(verdicts, len(faults)))
    if not faults and len(verdicts) == len(everything):
        PAGE.write_text(page(everything, reasons), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
