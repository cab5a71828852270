"""How many seeds the simulator takes to find each fault: `python -m kvfence.simulation.faults_found`.

Exit codes: 0 every fault that a run can express was found, 1 one was not, 2 usage.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from kvfence.faults import CATALOGUE
from kvfence.simulation.matrix import simulator_finds

SEEDS = 1_000
WANTED = 15


def main(arguments: Sequence[str] | None = None) -> int:
    """Look for each fault; print the table."""
    parser = argparse.ArgumentParser(description="How many seeds it takes to find each fault.")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="most seeds a fault")
    parser.add_argument("--wanted", type=int, default=WANTED, help="finds a fault that are enough")
    parser.add_argument("names", nargs="*", help="faults; all without")
    flags = parser.parse_args(arguments)
    unknown = [name for name in flags.names if name not in CATALOGUE]
    if unknown:
        parser.error(f"there is no fault {', '.join(unknown)}: `kvfence faults` lists them")
    console = Console(highlight=False, width=140)
    table = Table("fault", "found", "seeds run", "median seeds to find", "first finding", box=None)
    missed = 0
    for name in flags.names or CATALOGUE:
        result = simulator_finds(CATALOGUE[name], wanted=flags.wanted, seeds_max=flags.seeds)
        missed += not result.found
        median = "never" if result.median is None else f"{result.median:g}"
        table.add_row(name, str(result.found), str(result.seeds), median, ", ".join(result.kinds))
    console.print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
