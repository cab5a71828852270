"""Write docs/check_faults.md: what `kvfence check` finds of each fault, from runs that `--measure` made.

`--measure` plays each fault of the fake servers against the scenarios that say that they can see its class,
and against the profiles, in virtual time; and the healthy fakes against `standard`. `--engine` does the same
on real processes, with the faults of the catalogue. Both keep every run in docs/check_faults.json as soon as
it is over and leave out what is there, so they can be interrupted and begun again; names restrict them to
some faults. Without either, the page is written from that file alone, and `--check` says whether it is up to
date (exit 1 when it is not).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs" / "check_faults.md", ROOT / "docs" / "check_faults.json"
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.check.controls import HARD, Played, play  # noqa: E402 -- runs from anywhere
from tests.check.fake.faults import EXPOSING, FAULTS, setup_for  # noqa: E402
from tests.check.fake.variants import HEALTHY  # noqa: E402

from kvfence.check.scenarios import SCENARIOS  # noqa: E402
from kvfence.check.statistics import clopper_pearson  # noqa: E402
from kvfence.report import Verdict  # noqa: E402

SEEDS, ENGINE_SEEDS, HEALTHY_SEEDS = 20, 3, 20
# `standard` is long; its scenarios are played one by one over all seeds.
PROFILES = {"quick": 20, "standard": 3}
# One-sided: "at least" and "at most" with 95 % are ends of an interval of 90 %.
ONE_SIDED = 0.9
# What is kept of a run beside its finding: verdicts that say something.
TOLD = frozenset((*(one.value for one in HARD), Verdict.EXPOSED.value, Verdict.INCONCLUSIVE.value))
BAD = frozenset((Verdict.LEAK.value, Verdict.UNREAD.value, Verdict.TRUNCATED.value, Verdict.HANG.value))

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
def read_data() -> dict[str, Any]:
    """What was measured so far."""
    if not DATA.exists():
        return {"fake": {}, "healthy": {}, "engine": {}, "engine_healthy": {}}
    data: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return data


def keep(part: str, name: str, column: str, played: Played) -> None:
    """Add one run to the file."""
    data = read_data()
    cell = data[part].setdefault(name, {}).setdefault(column, {})
    cell[str(played.seed)] = {
        "found": played.scenario,
        "verdict": played.verdict,
        "codes": sorted(set(played.codes)),
        "requests": played.requests,
        "seconds": played.seconds,
        "verdicts": {name: verdict for name, verdict in sorted(played.ended.items()) if verdict in TOLD},
    }
    DATA.write_text(_as_text(data), encoding="utf-8")


def _as_text(data: dict[str, Any]) -> str:
    """One line for each cell, so that a run changes one line."""
    parts = []
    for part, names in sorted(data.items()):
        rows = [
            f"{json.dumps(name)}: {{\n"
            + ",\n".join(f" {json.dumps(column)}: {_cell(cells[column])}" for column in sorted(cells))
            + "\n}"
            for name, cells in sorted(names.items())
        ]
        parts.append(f"{json.dumps(part)}: {{\n" + ",\n".join(rows) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _cell(cell: dict[str, Any]) -> str:
    return json.dumps(dict(sorted(cell.items(), key=lambda item: int(item[0]))), separators=(",", ":"))


def is_there(part: str, name: str, column: str, seed: int) -> bool:
    """Whether this run was made already."""
    return str(seed) in read_data()[part].get(name, {}).get(column, {})


def columns_for(name: str) -> list[tuple[str, tuple[str, ...], str]]:
    """(column, scenarios, profile) for a fault: each scenario that can see its class, then the profiles."""
    cause = name.partition("/")[0]
    seeing = [one.name for one in SCENARIOS.values() if cause in one.classes]
    if cause == "over-length":
        deep = ("boundary, deep", ("boundary",), "deep")
        return [("boundary", ("boundary",), "standard"), deep, *((one, (), one) for one in PROFILES)]
    return [*((one, (one,), "standard") for one in seeing), *((profile, (), profile) for profile in PROFILES)]


def measure_fakes(names: list[str], seeds: int, until_s: float | None) -> None:
    """Play faults, seed by seed, so that an interrupted measurement has seen each fault."""
    for seed in range(seeds):
        for name in names or FAULTS:
            counts = HARD | {Verdict.EXPOSED} if name in EXPOSING else HARD
            for column, only, profile in columns_for(name):
                if only or seed < PROFILES[profile]:
                    run = _fake_run(name, only, profile, counts)
                    _once("fake", name, column, seed, run, until_s)


def measure_healthy(names: list[str], seeds: int, until_s: float | None) -> None:
    """Play healthy servers to the end of `standard`."""
    for seed in range(seeds):
        for name in names or HEALTHY:
            _once("healthy", name, "standard", seed, _healthy_run(name), until_s)


def measure_engine(names: list[str], seeds: int, until_s: float | None) -> None:
    """Play the catalogue's faults on real processes, then healthy deployments."""
    # What real processes need is not there on the core install.
    from tests.check import engine_controls as real  # noqa: PLC0415

    for seed in range(seeds):
        for name in names or real.faults_outside():
            if name in real.HEALTHY:
                continue

            def run(seed: int, name: str = name) -> Played:
                return real.check_served(real.serve_flags(name), seed=seed, counts=real.counts_for(name))

            _once("engine", name, "standard", seed, run, until_s)
        for name in [one for one in real.HEALTHY if not names or one in names]:

            def calm(seed: int, name: str = name) -> Played:
                return real.check_served(real.HEALTHY[name], seed=seed, profile="quick")

            _once("engine_healthy", name, "quick", seed, calm, until_s)


def _fake_run(
    name: str, only: tuple[str, ...], profile: str, counts: frozenset[Verdict]
) -> Callable[[int], Played]:
    return lambda seed: play(setup_for(name), seed=seed, only=only, profile=profile, counts=counts)


def _healthy_run(name: str) -> Callable[[int], Played]:
    return lambda seed: play(HEALTHY[name], seed=seed, ends_early=False)


def _once(
    part: str, name: str, column: str, seed: int, run: Callable[[int], Played], until_s: float | None
) -> None:
    if is_there(part, name, column, seed) or (until_s is not None and time.monotonic() > until_s):
        return
    played = run(seed)
    keep(part, name, column, played)
    print(
        part, name, column, seed, played.scenario, played.verdict, played.requests, played.seconds, flush=True
    )


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
    if data["engine"] or data["engine_healthy"]:
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


def _engine(faults: dict[str, Any], healthy: dict[str, Any]) -> Iterator[str]:
    yield "## On real processes"
    yield ""
    yield "`kvfence serve` with each fault that real nodes get to, and without the layers that stop it."
    yield ""
    yield "| fault | standard | found by |"
    yield "| --- | --- | --- |"
    for name in sorted(faults):
        cell = faults[name]["standard"]
        yield f"| `{name}` | {cell_text(cell)} | {finders(cell)} |"
    yield ""
    for name in sorted(healthy):
        runs = list(healthy[name]["quick"].values())
        bad = sum(any(verdict in BAD for verdict in run["verdicts"].values()) for run in runs)
        yield f"- healthy, {name}: {bad} false verdicts in {len(runs)} runs of `quick`"
    yield ""


def main() -> int:
    """Measure, write or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true", help="play the fake servers")
    parser.add_argument("--healthy", action="store_true", help="with --measure: the healthy ones alone")
    parser.add_argument("--engine", action="store_true", help="play real processes; takes hours")
    parser.add_argument("--seeds", type=int, help="how many seeds")
    parser.add_argument("--minutes", type=float, help="begin no run after so long")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    until_s = None if flags.minutes is None else time.monotonic() + 60 * flags.minutes
    if flags.engine:
        measure_engine(flags.names, flags.seeds or ENGINE_SEEDS, until_s)
    if flags.measure and not flags.healthy:
        measure_fakes([name for name in flags.names if name in FAULTS], flags.seeds or SEEDS, until_s)
    if flags.measure and (flags.healthy or not flags.names):
        measure_healthy([one for one in flags.names if one in HEALTHY], flags.seeds or HEALTHY_SEEDS, until_s)
    text = page(read_data())
    if flags.check:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/check_faults.md is out of date: run python docs/make_check.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
