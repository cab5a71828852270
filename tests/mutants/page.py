"""docs/mutants.md: the score of the last full run, how it was counted, and the equivalent mutants.

The page is written after a full run without faults, and by nothing else; then every mutant that is not
listed as equivalent was killed, so that the page follows from tables and list. It carries a fingerprint of
all mutations: when a table changes, the page is stale until the run has been made again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from tests.mutants.killers import FOLDER, NO_KILLERS
from tests.mutants.mutations import TABLES, Mutation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"
GROUPS = {
    "drop": "row dropped",
    "to": "next state swapped",
    "silent": "action dropped",
    "as": "action swapped",
}

HEAD = """\
# Mutants of the tables

Written by `make mutants` after a full run; do not edit by hand.

Each of the three tables in [the protocol](protocol.md) is data, so that every way to get one row wrong can
be tried: the row is dropped; it leads to another state (each other state of the role, in turn); its action
does nothing; it has another row's action (each other one, in turn). A row whose action is `nothing` has none
of the third kind. A mutant is *killed* when a test fails, or never ends, or else when the explorer finds a
broken law; it is *equivalent* when nothing that a node says, counts, or will ever do can differ, and then it
is listed below with the reason.
"""


def fingerprint(mutations: Iterable[Mutation]) -> str:
    """Name the set of all mutations, rows included."""
    lines = "\n".join(f"{mutation} {mutation.row}" for mutation in mutations)
    return sha256(lines.encode()).hexdigest()[:12]


def killers() -> Iterator[str]:
    """Say which tests count."""
    yield f"Killers are the tests in `{FOLDER}` that put events in and look at what comes out. These are none:"
    yield ""
    for name, reason in NO_KILLERS.items():
        yield f"- `{name}`: {reason}"


def counts(mutations: list[Mutation], reasons: Mapping[str, str]) -> Iterator[str]:
    """Count mutants by table and kind."""
    yield f"| table | rows | {' | '.join(GROUPS.values())} | mutants | killed | equivalent |"
    yield "| --- | --- |" + " --- |" * (len(GROUPS) + 3)
    for role, table in TABLES.items():
        own = [m for m in mutations if m.role == role]
        groups = Counter(m.group for m in own)
        equivalent = sum(str(m) in reasons for m in own)
        kinds = " | ".join(f"{groups[group]:,}" for group in GROUPS)
        killed = f"{len(own) - equivalent:,}"
        yield f"| {role} | {len(table.rows)} | {kinds} | {len(own):,} | {killed} | {equivalent} |"


def score(mutations: list[Mutation], reasons: Mapping[str, str]) -> str:
    """Say the score in a line."""
    equivalent = sum(str(m) in reasons for m in mutations)
    killed = len(mutations) - equivalent
    return f"**{killed:,} of {len(mutations):,} mutants killed, {equivalent} equivalent, 0 survive: 100 %.**"


def equivalent(reasons: Mapping[str, str]) -> Iterator[str]:
    """List the equivalent mutants by their reason."""
    if not reasons:
        yield "None."
    for number, reason in enumerate(dict.fromkeys(reasons.values()), 1):
        names = ", ".join(f"`{name}`" for name, other in reasons.items() if other == reason)
        yield f"{number}. {reason} {names}."


def page(mutations: list[Mutation], reasons: Mapping[str, str]) -> str:
    """Return the whole page."""
    parts = [
        HEAD,
        score(mutations, reasons) + f" Tables as of fingerprint `{fingerprint(mutations)}`.\n",
        "\n".join(counts(mutations, reasons)) + "\n",
        "## What may kill\n\n" + "\n".join(killers()) + "\n",
        "## Equivalent mutants\n\n" + "\n".join(equivalent(reasons)) + "\n",
    ]
    return "\n".join(parts)
