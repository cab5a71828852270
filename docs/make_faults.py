"""Write docs/faults.md: which layer catches which fault, from runs that `--measure` made.

`--measure` runs the simulator (and the explorer) for every fault, or for those that are named, and keeps what
it saw in docs/faults.json; without it the page is written from that file alone, and `--check` says whether it
is up to date (exit 1 when it is not). A test does the same, and measures some cells again.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs" / "faults.md", ROOT / "docs" / "faults.json"
CHECKED = ROOT / "docs" / "check_faults.json"  # docs/make_check.py's
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.check.engine_sizes import BLIND, faults_outside  # noqa: E402 -- runs from anywhere
from tests.check.kept import Data, read_data  # noqa: E402

from kvfence.faults import CATALOGUE, Fault, Layer, faulty_decisions  # noqa: E402
from kvfence.simulation.matrix import (  # noqa: E402
    POISON_FAULT,
    control,
    find_leaks,
    judge,
    poison,
    simulator_finds,
)
from kvfence.verification import SCOPES, explorer_finds, find_stranded  # noqa: E402
from kvfence.verification.fault_scopes import FAULT_SCOPES  # noqa: E402

RUN_LAYERS = (Layer.ADMISSION, Layer.REFUSAL, Layer.MANIFEST, Layer.SEAL, Layer.GUARD, Layer.QUARANTINE)
COLUMNS = (*RUN_LAYERS, Layer.EXPLORER, Layer.SIMULATOR, Layer.OUTSIDE)
LEAKS_WANTED, LEAK_SEEDS_MAX = 10, 700
FINDS_WANTED, FIND_SEEDS_MAX = 10, 1_000
STATES_MAX = 60_000
COMMAND = "python docs/make_faults.py --measure"

HEAD = """\
# Which layer catches which fault

Written by `docs/make_faults.py` from `docs/faults.json`, which it made from runs (the command stands there);
do not edit by hand. The faults themselves: `kvfence faults`, and `kvfence faults show NAME`.

For every fault, all layers that detect were first switched off (and, where a layer refuses before the fault
can act, that one too), and the simulator was run under harsh weather until the fault's harm had shown in
{wanted} seeds, or for up to {most} seeds: that is the column *harm*, with the number of seeds that were run.
Then each layer was switched on alone, over those same seeds.

- **caught** n/m: the layer spoke in n of those m seeds. *By chance*: the catalogue does not count on it, for
  it speaks now and then, and stops nothing. Admission and refusal speak by refusing; what they refuse does no
  harm. The quarantine speaks by holding pages, where they are shown, out of reach.
- **missed**: the layer was on, and foreign, unwritten or dirty slots went past it.
- **·** (not applicable): the layer has nothing to do with it. Admission, refusal and quarantine were tried
  only where the catalogue names them.
- **explorer**: found by breadth-first exploration, in the scope named, within the number of steps named.
- **simulator**: found in ordinary weather with every layer on that does not hide the fault; the median
  number of seeds that it takes. A layer of the fence that speaks in a deployment is a finding, too.
- **outside check**: found by `kvfence check` on real processes, in n of m runs, by the scenario named; *on a
  fake* where no real process was measured yet, and a fake server has the same fault. What each run was, and
  what is known of those that found nothing: [check_faults.md](check_faults.md).
"""


# ---------------------------------------------------------------- measuring
def measure(name: str) -> dict[str, Any]:
    """Everything that is known of one fault."""
    fault = CATALOGUE[name]
    leaks = find_leaks(fault, wanted=LEAKS_WANTED, seeds_max=LEAK_SEEDS_MAX)
    found = simulator_finds(fault, wanted=FINDS_WANTED, seeds_max=FIND_SEEDS_MAX)
    cells = {layer: judge(fault, layer, leaks) for layer in RUN_LAYERS}
    return {
        "harm": {"seeds": list(leaks.seeds), "tried": leaks.tried, "kinds": list(leaks.kinds)},
        "cells": {
            layer.value: {"verdict": cell.verdict.value, "caught": cell.caught, "runs": cell.runs}
            for layer, cell in cells.items()
        },
        "simulator": {"seeds": found.seeds, "found": found.found, "median": found.median},
    }


def explore(fault: Fault) -> dict[str, Any] | None:
    """The shortest way to the fault in the scope that is kept for it; None where none was found."""
    where = FAULT_SCOPES[fault.name]
    decisions, scope = faulty_decisions((fault.name,), where.layers_off)(), SCOPES[where.scope]
    if where.stays_away:
        found = find_stranded(scope, decisions).stranded
    else:
        found = explorer_finds(decisions, scope, only=frozenset((where.kind,)), states_max=STATES_MAX)
    return None if found is None else {"scope": where.scope, "steps": len(found.happenings)}


def measure_all(names: list[str], parts: frozenset[str]) -> None:
    """Measure the named faults, or all; keep each as soon as it is known."""
    if not names and "runs" in parts:
        keep(lambda data: data.update(control=control(), poison=asdict(poison())))
    for name in names or CATALOGUE:
        known: dict[str, Any] = measure(name) if "runs" in parts else {}
        if "explorer" in parts:
            known["explorer"] = explore(CATALOGUE[name])
        keep(lambda data, name=name, known=known: data["faults"].setdefault(name, {}).update(known))
        print(name, json.dumps(known), flush=True)


def keep(change: Callable[[dict[str, Any]], None]) -> None:
    """Change what is kept; faults stand in the order of the catalogue."""
    data = read() if DATA.exists() else {"command": COMMAND, "control": {}, "faults": {}}
    change(data)
    data["faults"] = {name: data["faults"][name] for name in CATALOGUE if name in data["faults"]}
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """What was measured."""
    data: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return data


# ---------------------------------------------------------------- the page
def caught_by(entry: dict[str, Any]) -> list[str]:
    """The layers that caught it."""
    caught = [name for name, cell in entry["cells"].items() if cell["verdict"] == "caught"]
    caught += ["explorer"] if entry.get("explorer") else []
    return caught + (["simulator"] if entry["simulator"]["found"] else [])


def outside(name: str, checked: Data) -> str:
    """The cell of the check from outside: real processes where they were measured, else a fake."""
    real = checked["engine"].get(name, {})
    place, columns = ("", real) if real else (" on a fake", checked["fake"].get(name, {}))
    seeds = {seed for runs in columns.values() for seed in runs}
    found = [(seed, run) for runs in columns.values() for seed, run in runs.items() if run["found"]]
    if not seeds:
        return "·"
    if not found:
        return f"missed{place}"
    by = Counter(run["found"] for _, run in found).most_common(1)[0][0]
    return f"caught {len({seed for seed, _ in found})}/{len(seeds)}{place}: {by}"


def cell_of(fault: Fault, entry: dict[str, Any], layer: Layer, checked: Data) -> str:
    """One cell in words."""
    if layer is Layer.OUTSIDE:
        return outside(fault.name, checked)
    if layer is Layer.EXPLORER:
        found = entry.get("explorer")
        if not found:
            return "·"
        return f"caught: {found['scope']}, {found['steps']} {'step' if found['steps'] == 1 else 'steps'}"
    if layer is Layer.SIMULATOR:
        median = entry["simulator"]["median"]
        return "missed" if median is None else f"caught: {median:g}"
    cell = entry["cells"][layer.value]
    if cell["verdict"] == "caught":
        chance = " by chance" if layer in fault.by_chance else ""
        return f"caught {cell['caught']}/{cell['runs']}{chance}"
    return "missed" if cell["verdict"] == "missed" else "·"


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
    checked = read_data(CHECKED)
    head = HEAD.format(wanted=LEAKS_WANTED, most=LEAK_SEEDS_MAX)
    return "\n".join([head, *_table(data, checked), *_out_of_sight(checked), *_notes(data)])


def _table(data: dict[str, Any], checked: Data) -> Iterator[str]:
    names = " | ".join(layer.value for layer in COLUMNS)
    yield f"| fault | harm | {names} |"
    yield "| --- " * (2 + len(COLUMNS)) + "|"
    for name in CATALOGUE:
        entry = data["faults"][name]
        harm = entry["harm"]
        shown = f"{', '.join(harm['kinds'])} ({harm['tried']})" if harm["seeds"] else "not shown"
        cells = " | ".join(cell_of(CATALOGUE[name], entry, layer, checked) for layer in COLUMNS)
        yield f"| `{name}` | {shown} | {cells} |"


def _out_of_sight(checked: Data) -> Iterator[str]:
    """Why a fault has no cell of the check from outside."""
    yield ""
    yield "## Out of sight"
    yield ""
    yield "Not tried by the check from outside:"
    yield ""
    yield from (f"- `{name}`: {why}." for name, why in BLIND.items())
    world = [name for name, fault in CATALOGUE.items() if not fault.runs_on_engine]
    yield f"- {', '.join(f'`{name}`' for name in world)}: real nodes do not get there by themselves."
    left = [name for name in faults_outside() if outside(name, checked) == "·"]
    if left:
        yield f"- not measured yet: {', '.join(f'`{name}`' for name in left)}."


def _notes(data: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield "## Control"
    yield ""
    yield "Without a fault, in harsh weather, runs with harm among all runs:"
    yield ""
    for name, result in data["control"].items():
        yield f"- {name}: {result['harmed']} of {result['runs']}"
    yield from _poison(data["poison"])
    entries = data["faults"]
    two = sum(len(caught_by(entries[name])) >= 2 for name in CATALOGUE)
    shown = sum(bool(entries[name]["harm"]["seeds"]) for name in CATALOGUE)
    yield ""
    yield "## Summary"
    yield ""
    yield f"- {len(CATALOGUE)} faults; {two} are caught by at least two layers."
    yield f"- The harm of {shown} shows in the simulator with every layer off that could notice."
    lacking = [name for name in CATALOGUE if not entries[name]["harm"]["seeds"]]
    for name in lacking:
        yield f"- `{name}` was not seen to do harm within {entries[name]['harm']['tried']} seeds."
    yield ""


def _poison(seen: dict[str, int]) -> Iterator[str]:
    yield ""
    yield "## Poison"
    yield ""
    yield "A page in which a foreign or torn seal was seen is set apart until all who could write to it are"
    yield "cut. Correct decisions never come to that. In harsh weather, with every layer on, and with"
    yield f"`{POISON_FAULT}`:"
    yield ""
    yield f"- pages were set apart in {seen['set_apart']} of {seen['runs']} runs;"
    yield f"- in {seen['came_home']} of these one came home after the cut; the others are shown to the end."


def main() -> int:
    """Measure, write or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true", help="run simulator and explorer")
    parser.add_argument("--part", choices=("runs", "explorer"), help="measure this alone")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    if flags.measure:
        measure_all(flags.names, frozenset((flags.part,) if flags.part else ("runs", "explorer")))
        if flags.names:
            return 0
    text = page(read())
    if flags.check:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/faults.md is out of date: run `make docs`.", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
