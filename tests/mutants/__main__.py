"""`python -m tests.mutants`: try mutants of the tables, print the score, write docs/mutants.md.

Exit 0 when every mutant is killed or listed as equivalent, 1 when one survives or the list is wrong, 2 when
nothing could be tried. Only a full run writes the page.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Collection

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.mutants import equivalents
from tests.mutants.killers import explorer_kills
from tests.mutants.mutations import Mutation, all_mutations, chosen, sampled
from tests.mutants.page import PAGE, page
from tests.mutants.runner import Fate, RigError, Verdict, try_mutations


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="a role, a row (decode:RESERVED/ABORT) or one mutant (decode:RESERVED/ABORT drop); repeatable",
    )
    parser.add_argument("--sample", action="store_true", help="a few mutants of each kind, always the same")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tried at once")
    parser.add_argument("--verbose", action="store_true", help="say of each mutant what killed it")
    return parser.parse_args()


def watched(
    mutations: list[Mutation], jobs: int, listed: Collection[str], console: Console, *, verbose: bool
) -> list[Verdict]:
    """Try the mutations under a progress bar; survivors that are not `listed` are named at once."""
    columns = (TextColumn("mutants"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("mutants", total=len(mutations))

        def report(verdict: Verdict) -> None:
            progress.advance(task)
            if verbose or (verdict.fate is Fate.SURVIVED and str(verdict.mutation) not in listed):
                killer = f", by {verdict.killer}" if verdict.killer else ""
                progress.print(f"{verdict.mutation}: {verdict.fate.value}{killer}", markup=False)

        return try_mutations(mutations, report, jobs=jobs, second=explorer_kills)


def summary(verdicts: Collection[Verdict], listed: Collection[str]) -> str:
    """Say the score of this run in a line."""
    fates = Counter(verdict.fate for verdict in verdicts)
    killed = fates[Fate.KILLED] + fates[Fate.HUNG]
    equivalent = sum(v.fate is Fate.SURVIVED and str(v.mutation) in listed for v in verdicts)
    survive = fates[Fate.SURVIVED] - equivalent
    percent = 100 * killed / max(1, killed + survive)
    return (
        f"{len(verdicts):,} mutants: {killed:,} killed ({fates[Fate.HUNG]} of them hung), "
        f"{equivalent} equivalent, {survive} survive: {percent:.1f} %"
    )


def main() -> int:
    """Try what was asked for."""
    asked, console = arguments(), Console(stderr=True)
    everything = all_mutations()
    try:
        reasons = equivalents.read()
        faults = list(equivalents.strangers(reasons, everything))
        mutations = chosen(everything, asked.only) if asked.only else everything
        mutations = sampled(mutations) if asked.sample else mutations
        verdicts = watched(mutations, max(1, asked.jobs), reasons, console, verbose=asked.verbose)
    except (ValueError, RigError) as error:
        print(f"No mutant was tried: {error}", file=sys.stderr)
        return 2
    faults += equivalents.faults(reasons, verdicts)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(summary(verdicts, reasons))
    if not faults and len(verdicts) == len(everything):
        PAGE.write_text(page(everything, reasons), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
