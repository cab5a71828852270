"""What `kvfence faults` shows: the catalogue as a table and as data, and one fault explained.

It reads the catalogue and switches nothing on. What it returns is for a console or for JSON.
"""

from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kvfence.faults import (
    BUGS,
    CATALOGUE,
    ROOT_CAUSES,
    SWITCHES,
    Bug,
    Fault,
    Ground,
    Harm,
    Layer,
    fault_named,
)
from kvfence.verification.fault_scopes import FAULT_SCOPES

HARMS = {
    Harm.LEAK: "leak",
    Harm.REUSE: "another tenant's pages are used",
    Harm.STALL: "pages do not come home",
    Harm.TRESPASS: "a step writes into pages of another row",
    Harm.DOUBLE: "one request is computed twice at once",
}
GROUNDS = {
    Ground.ENGINE: "real nodes",
    Ground.WORLD: "the simulator and the explorer; real nodes do not get there by themselves",
    Ground.BOTH: "real nodes, the simulator and the explorer",
}
INDENT = "  "
NO_BUG = "no public bug: a slip that a protocol of this kind invites"
SMALL_POOL_TOKENS = 2048


def overview() -> Group:
    """Every fault in a line, and the classes that have none."""
    absent = [Text(f"no {name}: {why}") for name, why in _classes_without().items()]
    return Group(_table(), *absent, Text("kvfence faults show NAME explains one, and says how to run it"))


def _classes_without() -> dict[str, str]:
    return {c.name: c.absent_because for c in ROOT_CAUSES.values() if c.absent_because is not None}


def _table() -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for heading in ("fault", "runs on", "caught by"):
        table.add_column(heading, no_wrap=heading != "caught by")
    for fault in CATALOGUE.values():
        table.add_row(fault.name, fault.runs_on.value, ", ".join(layer.value for layer in fault.caught_by))
    return table


def explanation(name: str) -> Text:
    """What is known of a fault, for people. Raises OperatorError for a name that is none."""
    fault = fault_named(name)
    text = Text.assemble((fault.name, "bold"), f": {ROOT_CAUSES[fault.root_cause].what}\n\n")
    text.append(f"{fault.what}\n{fault.leaks}\n")
    _part(text, "decisions that it gets wrong", [", ".join(fault.decisions)])
    _part(text, "caught by", [", ".join(layer.value for layer in fault.caught_by)])
    _part(text, "runs on", [GROUNDS[fault.runs_on]])
    _part(
        text, "stands for, as reported there", [_bug_words(BUGS[number]) for number in fault.bugs] or [NO_BUG]
    )
    _part(text, "to see it", how_to_run(fault))
    text.rstrip()
    return text


def _part(text: Text, heading: str, lines: Iterable[str]) -> None:
    text.append(f"\n{heading}\n", "dim")
    for line in lines:
        text.append(f"{INDENT}{line}\n")


def _bug_words(bug: Bug) -> str:
    place = "" if bug.url is None else f" ({bug.url})"
    return f"{bug.number} {bug.project} {bug.ref}: {bug.title}{place}"


def how_to_run(fault: Fault) -> list[str]:
    """Commands that show the fault: simulated, explored, and where it gets there on real nodes."""
    # Behind admission, which refuses first, it is simulated without that, and not explored by the command.
    hidden = " --without admission" if Layer.ADMISSION in fault.caught_by else ""
    where = FAULT_SCOPES[fault.name]
    lines = [f"kvfence simulate --fault {fault.name}{hidden}"]
    if not where.layers_off:
        lines.append(f"kvfence verify --scope {where.scope} --fault {fault.name}")
    if not fault.runs_on_engine:
        return lines
    off = [layer for layer in SWITCHES if layer in fault.caught_by]
    words = ["kvfence serve"]
    if fault.prefill_pool_only:
        words.append(f"--pool-tokens {SMALL_POOL_TOKENS}")
    elif fault.lifts_capacity or Layer.ADMISSION in off:
        words.append(f"--prefill-pool-tokens {SMALL_POOL_TOKENS}")
    words.append(f"--unsafe-fault {fault.name}")
    words += [f"--unsafe-without {layer.value}" for layer in off]
    return [*lines, " ".join((*words, "--i-understand-this-leaks-data"))]


def catalogue_as_data() -> dict[str, object]:
    """Return everything as plain data."""
    faults = [fault_as_data(name) for name in CATALOGUE]
    return {"faults": faults, "classes_without": _classes_without()}


def fault_as_data(name: str) -> dict[str, object]:
    """Return one fault as plain data. Raises OperatorError for a name that is none."""
    fault = fault_named(name)
    return {
        "name": fault.name,
        "class": fault.root_cause,
        "what": fault.what,
        "leaks": fault.leaks,
        "harm": HARMS[fault.harm],
        "decisions": list(fault.decisions),
        "caught_by": [layer.value for layer in fault.caught_by],
        "runs_on": fault.runs_on.value,
        "bugs": [_bug_as_data(BUGS[number]) for number in fault.bugs],
        "run": how_to_run(fault),
    }


def _bug_as_data(bug: Bug) -> dict[str, object]:
    return {"id": bug.number, "project": bug.project, "ref": bug.ref, "url": bug.url, "title": bug.title}
