"""Write docs/check_faults.md: what `kvfence check` finds of each fault, from runs that `--measure` made.

`--measure` plays each fault of the fake servers against the scenarios that say that they can see its class,
and against the profiles, in virtual time; and the healthy fakes against `standard`. `--engine` plays the
faults of the catalogue on real processes, each against the scenarios that can see it, until the first finding
or for `--limit` seconds. Healthy real processes are `make soak-check`'s. All keep every run in
docs/check_faults.json as soon as it is over and leave out what is there, so they can be interrupted and begun
again. Names restrict them to some faults; `--share 1/2` and `--share 2/2` are two processes, each with half.

`--drop PART` first forgets the runs of a part, for the code has changed. `--merge FILE` adds the runs of
another such file. Without any of these the page is written from what there is, and `--check` says whether it
is up to date (exit 1 when it is not).
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs" / "check_faults.md", ROOT / "docs" / "check_faults.json"
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.check.controls import HARD, Played, play  # noqa: E402 -- runs from anywhere
from tests.check.engine_sizes import BLIND, faults_outside, scenarios_for  # noqa: E402
from tests.check.fake.faults import EXPOSING, FAULTS, setup_for  # noqa: E402
from tests.check.fake.variants import HEALTHY  # noqa: E402
from tests.check.kept import PARTS, drop, is_there, keep, merge, read_data  # noqa: E402
from tests.check.soak import BAD, said_of_soak  # noqa: E402

from kvfence.check.scenarios import SCENARIOS  # noqa: E402
from kvfence.check.statistics import clopper_pearson  # noqa: E402
from kvfence.report import Verdict  # noqa: E402

SEEDS, ENGINE_SEEDS, HEALTHY_SEEDS = 20, 3, 20
# `standard` is long; its scenarios are played one by one over all seeds.
PROFILES = {"quick": 20, "standard": 3}
# One-sided: "at least" and "at most" with 95 % are ends of an interval of 90 %.
ONE_SIDED = 0.9

HEAD = """\
# What `kvfence check` finds

Written by `docs/make_check.py` from `docs/check_faults.json`, which it made from runs; do not edit by hand.
The fake servers stand in `tests/check/fake`: a page pool whose slots say whose they are, a toy model that
answers from the slots that it reads, and faults that each get one decision wrong. What a fault leaks, it
leaks by that mechanism. Time is virtual, and seconds are the server's.

A cell says in how many runs of how many seeds a fault was found. All of 20 does not mean always: it means at
least 86 %, with 95 % confidence; every share below comes with its own bound.
"""


# ---------------------------------------------------------------- measuring
@dataclass(frozen=True)
class Task:
    """One run to make: where it is kept, and how it is made."""

    part: str
    name: str
    column: str
    seed: int
    run: Callable[[int], Played]


def columns_for(name: str) -> list[tuple[str, tuple[str, ...], str]]:
    """(column, scenarios, profile) for a fault: each scenario that can see its class, then the profiles."""
    cause = name.partition("/")[0]
    seeing = [one.name for one in SCENARIOS.values() if cause in one.classes]
    if cause == "over-length":
        deep = ("boundary, deep", ("boundary",), "deep")
        return [("boundary", ("boundary",), "standard"), deep, *((one, (), one) for one in PROFILES)]
    return [*((one, (one,), "standard") for one in seeing), *((profile, (), profile) for profile in PROFILES)]


def fakes(names: list[str], seeds: int) -> Iterator[Task]:
    """Faults, seed by seed, so that an interrupted measurement has seen each fault."""
    for seed in range(seeds):
        for name in names or FAULTS:
            counts = HARD | {Verdict.EXPOSED} if name in EXPOSING else HARD
            for column, only, profile in columns_for(name):
                if only or seed < PROFILES[profile]:
                    yield Task("fake", name, column, seed, _fake_run(name, only, profile, counts))


def healthy(names: list[str], seeds: int) -> Iterator[Task]:
    """Healthy servers, to the end of `standard`."""
    for seed in range(seeds):
        for name in names or HEALTHY:
            yield Task("healthy", name, "standard", seed, _healthy_run(name))


def engine(names: list[str], seeds: int, limit_s: float | None, logs: Path | None) -> Iterator[Task]:
    """The catalogue's faults, on real processes."""
    # What real processes need is not there on the core install.
    from tests.check import engine_controls as real  # noqa: PLC0415

    for seed in range(seeds):
        for name in names or faults_outside():

            def run(seed: int, name: str = name) -> Played:
                return real.check_fault(name, seed=seed, limit_s=limit_s or real.LIMIT_SECONDS, keep=logs)

            yield Task("engine", name, "its scenarios", seed, run)


def _fake_run(
    name: str, only: tuple[str, ...], profile: str, counts: frozenset[Verdict]
) -> Callable[[int], Played]:
    return lambda seed: play(setup_for(name), seed=seed, only=only, profile=profile, counts=counts)


def _healthy_run(name: str) -> Callable[[int], Played]:
    return lambda seed: play(HEALTHY[name], seed=seed, ends_early=False)


def measure(tasks: Iterable[Task], share: tuple[int, int], until_s: float | None) -> None:
    """Make the runs of our share that are not there. One that came to nothing is said, and not kept."""
    for number, task in enumerate(tasks):
        where = (task.part, task.name, task.column)
        if number % share[1] != share[0] or is_there(DATA, *where, task.seed):
            continue
        if until_s is not None and time.monotonic() > until_s:
            return
        try:
            played = task.run(task.seed)
        except (RuntimeError, AssertionError) as error:
            if task.part != "engine":
                raise
            print(*where, task.seed, f"was not measured: {error}", file=sys.stderr, flush=True)
            continue
        keep(DATA, *where, played)
        said = (played.scenario, played.verdict, played.requests, played.seconds, played.moved)
        print(*where, task.seed, *said, flush=True)


def share_of(text: str) -> tuple[int, int]:
    """Which of how many: "1/2" is (0, 2)."""
    which, _, of = text.partition("/")
    if not (which.isdecimal() and of.isdecimal() and 1 <= int(which) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r} is no share: 1/2 is the first of two")
    return int(which) - 1, int(of)


# ---------------------------------------------------------------- the page
def share(hits: int, runs: int) -> str:
    """Hits of runs, with what they mean at least."""
    return f"{hits}/{runs} (≥ {clopper_pearson(hits, runs, confidence=ONE_SIDED)[0]:.0%})"


def cell_text(cell: dict[str, Any]) -> str:
    """One cell: how often it was found, and the median of what it took."""
    runs = list(cell.values())
    found = [run for run in runs if run["found"] is not None]
    if not found:
        return f"0/{len(runs)}"
    requests, seconds = median(run["requests"] for run in found), median(run["seconds"] for run in found)
    return f"{share(len(found), len(runs))}, {requests:.0f} requests, {seconds:.0f} s"


def finders(cell: dict[str, Any]) -> str:
    """Which scenarios found it, with their verdicts, the most frequent first."""
    found = Counter(
        f"`{run['found']}`: {run['verdict']}" for run in cell.values() if run["found"] is not None
    )
    return ", ".join(word for word, _ in found.most_common(2)) or "not found"


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
    lines = [HEAD, *_profiles(data["fake"]), *_scenarios(data["fake"]), *_healthy(data["healthy"])]
    lines += _engine(data["engine"], data["engine_healthy"])
    return "\n".join([*lines, ""])


def _profiles(faults: dict[str, Any]) -> Iterator[str]:
    yield "## Each fault, by profile"
    yield ""
    yield "| fault | quick | standard | found by |"
    yield "| --- | --- | --- | --- |"
    for name in FAULTS:
        cells = faults.get(name, {})
        quick, standard = (cell_text(cells[one]) if one in cells else "·" for one in PROFILES)
        yield f"| `{name}` | {quick} | {standard} | {finders(cells.get('standard', {}))} |"
    yield ""


def _scenarios(faults: dict[str, Any]) -> Iterator[str]:
    yield "## Each fault, by the scenarios that can see its class"
    yield ""
    yield "| fault | scenario | found |"
    yield "| --- | --- | --- |"
    for name in FAULTS:
        for column, only, _ in columns_for(name):
            if only and column in faults.get(name, {}):
                yield f"| `{name}` | `{column}` | {cell_text(faults[name][column])} |"
    yield ""


def _healthy(variants: dict[str, Any]) -> Iterator[str]:
    runs = [run for cells in variants.values() for run in cells["standard"].values()]
    if not runs:
        return
    wrong = sum(any(verdict in BAD for verdict in run["verdicts"].values()) for run in runs)
    suspects = sum(Verdict.SUSPECT.value in run["verdicts"].values() for run in runs)
    yield "## Healthy servers"
    yield ""
    yield "| server | runs | leak, unread, truncated or hang | suspect |"
    yield "| --- | --- | --- | --- |"
    for name in [one for one in HEALTHY if one in variants]:
        mine = list(variants[name]["standard"].values())
        bad = sum(any(verdict in BAD for verdict in run["verdicts"].values()) for run in mine)
        odd = sum(Verdict.SUSPECT.value in run["verdicts"].values() for run in mine)
        yield f"| {name} | {len(mine)} | {bad} | {odd} |"
    yield ""
    yield f"False verdicts: {_at_most(wrong, len(runs))}. Suspect: {_at_most(suspects, len(runs))}."
    yield ""


def _at_most(hits: int, runs: int) -> str:
    bound = clopper_pearson(hits, runs, confidence=ONE_SIDED)[1]
    return f"{hits} of {runs} runs of `standard`, at most {bound:.1%} with 95 % confidence"


def _engine(faults: dict[str, Any], soaked: dict[str, Any]) -> Iterator[str]:
    yield "## On real processes"
    yield ""
    yield "`kvfence serve` with each fault that real nodes get to, without the layers that stop it, against"
    yield "the scenarios that can see it, in `standard`'s sizes, until the first finding. Where nothing was"
    yield "found, the deployment's trace says whether a core did what it would not have done without the"
    yield "fault. What a fault rules beside the cores (prefix pages, block tables, memory) shows in no trace."
    yield ""
    yield "| fault | tried with | found | by |"
    yield "| --- | --- | --- | --- |"
    for name in faults_outside():
        cell = faults.get(name, {}).get("its scenarios", {})
        tried = ", ".join(f"`{one}`" for one in scenarios_for(name))
        by = finders(cell) if any(run["found"] for run in cell.values()) else why_not(cell)
        yield f"| `{name}` | {tried} | {cell_text(cell) if cell else '·'} | {by} |"
    yield ""
    yield "Not played, for nobody can see them from outside:"
    yield ""
    yield from (f"- `{name}`: {why}." for name, why in BLIND.items())
    yield ""
    yield from said_of_soak(soaked)


def why_not(cell: dict[str, Any]) -> str:
    """What is known of runs in which nothing was found."""
    if not cell:
        return "not measured yet"
    runs = list(cell.values())
    ended = [run["limit_s"] for run in runs if "limit_s" in run]
    kinds = sorted({kind for run in runs for kind in run.get("moved") or {}})
    moved = sum(bool(run.get("moved")) for run in runs)
    said = f"not found within {max(ended):.0f} s" if ended else "not found"
    if not moved:
        return f"{said}; no trace left the protocol's path"
    return f"{said}; {moved} of {len(runs)} traces left the protocol's path ({', '.join(kinds)})"


def main() -> int:
    """Measure, write or check."""
    flags = _parser().parse_args()
    until_s = None if flags.minutes is None else time.monotonic() + 60 * flags.minutes
    for part in flags.drop or ():
        drop(DATA, part)
    if flags.merge:
        print(merge(DATA, flags.merge), "runs were added")
    if flags.engine:
        names = [name for name in flags.names if name in faults_outside()]
        measure(engine(names, flags.seeds or ENGINE_SEEDS, flags.limit, flags.logs), flags.share, until_s)
    if flags.measure and not flags.healthy:
        names = [name for name in flags.names if name in FAULTS]
        measure(fakes(names, flags.seeds or SEEDS), flags.share, until_s)
    if flags.measure and (flags.healthy or not flags.names):
        names = [name for name in flags.names if name in HEALTHY]
        measure(healthy(names, flags.seeds or HEALTHY_SEEDS), flags.share, until_s)
    text = page(read_data(DATA))
    if flags.check:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/check_faults.md is out of date: run `make docs`.", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true", help="play the fake servers")
    parser.add_argument("--healthy", action="store_true", help="with --measure: the healthy ones alone")
    parser.add_argument("--engine", action="store_true", help="play real processes; takes hours")
    parser.add_argument("--seeds", type=int, help="how many seeds")
    parser.add_argument("--minutes", type=float, help="begin no run after so long")
    parser.add_argument(
        "--share", type=share_of, default=(0, 1), metavar="I/N", help="one process of several"
    )
    parser.add_argument("--limit", type=float, help="with --engine: seconds of a run")
    parser.add_argument("--logs", type=Path, help="with --engine: keep events and logs of runs there")
    parser.add_argument("--drop", action="append", choices=PARTS, help="forget a part's runs")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="add the runs of another file")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    return parser


if __name__ == "__main__":
    sys.exit(main())
