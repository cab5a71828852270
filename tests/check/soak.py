"""`make soak-check`: `quick` runs against healthy deployments of real processes, and how often one was wrong.

Round robin over the deployments, some runs on each before the next is started, every run with a seed of its
own and kept as soon as it is over: an interrupted soak goes on where it was. At the end it says what the runs
prove: the upper bound of false verdicts, and whether *suspect* stays within the rate that is stated for it.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.check.controls import Played
from tests.check.engine_sizes import HEALTHY
from tests.check.kept import is_there, keep, read_data

from kvfence.check.statistics import at_least, clopper_pearson
from kvfence.check.verdicts import ALPHA
from kvfence.report import Verdict

DATA = Path(__file__).parents[2] / "docs" / "check_faults.json"
PART, COLUMN = "engine_healthy", "quick"
RUNS = 300
AT_ONE_START = 6
FAILURES_MAX = 3  # one after another: then something is wrong with the machine, or with us
BAD = frozenset((Verdict.LEAK.value, Verdict.UNREAD.value, Verdict.TRUNCATED.value, Verdict.HANG.value))
ONE_SIDED = 0.9  # one-sided bounds with 95 % are ends of an interval of 90 %

Checked = Callable[[int], Played]  # a seed → what a run of `quick` came to
Started = Callable[[str], AbstractContextManager[Checked]]  # a deployment's name → runs against it


def rounds(runs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(deployment, seeds), in order: so many runs in all, spread evenly."""
    seeds_of_each = -(-runs // len(HEALTHY))
    for first in range(0, seeds_of_each, AT_ONE_START):
        for place, name in enumerate(HEALTHY):
            mine = runs // len(HEALTHY) + (place < runs % len(HEALTHY))
            seeds = tuple(range(first, min(first + AT_ONE_START, mine)))
            if seeds:
                yield name, seeds


def soak(runs: int, start: Started, data: Path = DATA, until_s: float | None = None) -> None:
    """Make the runs that are not there. Raises RuntimeError after too many failures in a row."""
    failures = 0
    for name, seeds in rounds(runs):
        missing = [seed for seed in seeds if not is_there(data, PART, name, COLUMN, seed)]
        if not missing or is_late(until_s):
            continue
        with start(name) as check:
            for seed in missing:
                if is_late(until_s):
                    return
                try:
                    played = check(seed)
                except RuntimeError as error:
                    failures += 1
                    print(name, seed, f"came to nothing: {error}", file=sys.stderr, flush=True)
                    if failures == FAILURES_MAX:
                        raise
                    break  # the next runs get a fresh deployment
                failures = 0
                keep(data, PART, name, COLUMN, played)
                print(name, seed, played.verdict or "calm", played.requests, played.seconds, flush=True)


def is_late(until_s: float | None) -> bool:
    """Whether no run may begin any more."""
    return until_s is not None and time.monotonic() > until_s


@contextmanager
def on_processes(name: str) -> Iterator[Checked]:
    """Serve a healthy deployment, and check it as often as is asked."""
    # What real processes need is not there on the core install.
    from tests.check.engine_controls import check_once, home
    from tests.e2e.deployment import Deployment

    with home() as here, Deployment(here / "run", *HEALTHY[name]) as deployment:

        def check(seed: int) -> Played:
            lines = here / f"{seed}.jsonl"
            played = check_once(deployment.url, lines, seed, profile="quick", ends_early=False)
            if played.limit_s is not None:
                raise RuntimeError(f"a quick run was not over after {played.limit_s:g} s")
            return played

        yield check


# ---------------------------------------------------------------- what it proves
def said_of_soak(soaked: Mapping[str, Any]) -> Iterator[str]:
    """The table of healthy deployments, and what all runs together prove."""
    runs = [run for cells in soaked.values() for run in cells.get(COLUMN, {}).values()]
    yield "### Healthy deployments"
    yield ""
    if not runs:
        yield "Nothing is recorded yet: `make soak-check` does it."
        yield ""
        return
    yield "`quick` against healthy processes, run after run (`make soak-check`)."
    yield ""
    yield "| deployment | runs | leak, unread, truncated or hang | suspect |"
    yield "| --- | --- | --- | --- |"
    for name in [one for one in HEALTHY if one in soaked]:
        mine = list(soaked[name].get(COLUMN, {}).values())
        yield f"| {name} | {len(mine)} | {count(mine, BAD)} | {count(mine, {Verdict.SUSPECT.value})} |"
    yield ""
    yield from sums(runs)
    yield ""


def count(runs: list[dict[str, Any]], verdicts: set[str] | frozenset[str]) -> int:
    """In how many runs one of these verdicts was given."""
    return sum(any(verdict in verdicts for verdict in run["verdicts"].values()) for run in runs)


def sums(runs: list[dict[str, Any]]) -> Iterator[str]:
    """False verdicts and suspects among all runs, as sentences."""
    wrong, odd = count(runs, BAD), count(runs, {Verdict.SUSPECT.value})
    most = clopper_pearson(wrong, len(runs), confidence=ONE_SIDED)[1]
    yield f"False verdicts: {wrong} of {len(runs)} runs, at most {most:.1%} with 95 % confidence."
    chance = at_least(odd, len(runs), ALPHA)
    within = "within" if chance >= 1 - (1 + ONE_SIDED) / 2 else "above"
    yield (
        f"Suspect: {odd} of {len(runs)} runs, {within} the stated {ALPHA:.0%} of runs "
        f"(so many or more would be seen with a chance of {chance:.1%})."
    )


def main(arguments: list[str] | None = None) -> int:
    """Soak, and say what it proves; exit 1 where a verdict was false, or *suspect* too frequent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"in all, with those kept ({RUNS})")
    parser.add_argument("--minutes", type=float, help="begin no run after so long")
    parser.add_argument("--data", type=Path, default=DATA, help="the file of runs")
    flags = parser.parse_args(arguments)
    until_s = None if flags.minutes is None else time.monotonic() + 60 * flags.minutes
    soak(flags.runs, on_processes, flags.data, until_s)
    return tell(flags.data)


def tell(data: Path) -> int:
    """Print what the kept runs prove; 1 where something is wrong."""
    runs = [run for cells in read_data(data)[PART].values() for run in cells.get(COLUMN, {}).values()]
    if not runs:
        print("no run was made")
        return 0
    said = list(sums(runs))
    print("\n".join(said))
    return int(count(runs, BAD) > 0 or "above the stated" in said[1])


if __name__ == "__main__":
    sys.exit(main())
