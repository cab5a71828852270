"""What can be wrong with one row of a table: the list of all mutations, their names, and how one is applied.

Four kinds, for each row of the three tables:

- `drop`: the row is missing, so that its fact is illegal there (in CLOSING: counted and ignored);
- `to STATE`: the row leads to another state, for each other state of the role;
- `silent`: the row's action is replaced by one that does nothing. A row whose action is `nothing` has no
  such mutation: it would be the row itself;
- `as ACTION`: the row has the action of another row, for each action that rows of its sort have (those of
  ABSENT have no record to act on, and are a sort of their own).

A mutation is named `role:STATE/FACT kind`, for example `decode:RESERVED/ABORT to VERIFYING`.

It changes the very dict that the cores read, in place: the caller forks first, or undoes it (`applied`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kvfence.protocol import DECODE, PREFILL, ROUTER, DecodeCore, PrefillCore, RouterCore
from kvfence.protocol.rows import Row
from kvfence.protocol.tables import Table

TABLES: dict[str, Table[Any, Any]] = {table.role: table for table in (ROUTER, DECODE, PREFILL)}
CORES = {"router": RouterCore, "decode": DecodeCore, "prefill": PrefillCore}
SAMPLE_OF_KIND = 8  # mutants of each kind at most
NOTHING = "nothing"
SILENT = "silenced"  # the name under which a core finds the action that does nothing


@dataclass(frozen=True, slots=True)
class Mutation:
    """One row, and what the mutant has in its place (None: the row is missing)."""

    role: str
    state: str
    fact: str
    kind: str
    row: Row[Any] | None

    @property
    def place(self) -> str:
        """The row that is wrong."""
        return f"{self.role}:{self.state}/{self.fact}"

    @property
    def group(self) -> str:
        """drop, to, silent or as."""
        return self.kind.partition(" ")[0]

    @property
    def key(self) -> tuple[Any, Any]:
        """The row's key in its table."""
        table = TABLES[self.role]
        return table.states[self.state], table.facts[self.fact]

    def __str__(self) -> str:
        return f"{self.place} {self.kind}"


def mutations_of(table: Table[Any, Any]) -> Iterator[Mutation]:
    """Yield all mutations of one table, row by row."""
    actions = {
        is_absent: sorted({r.action for (s, _), r in table.rows.items() if (s is table.absent) is is_absent})
        for is_absent in (True, False)
    }
    for (state, fact), row in table.rows.items():
        place = (table.role, state.name, fact.name)
        yield Mutation(*place, "drop", None)
        for other in table.states:
            if other is not row.next_state:
                yield Mutation(*place, f"to {other.name}", Row(other, row.action))
        if row.action != NOTHING:
            yield Mutation(*place, "silent", Row(row.next_state, SILENT))
        for action in actions[state is table.absent]:
            if action not in (row.action, NOTHING):
                yield Mutation(*place, f"as {action}", Row(row.next_state, action))


def all_mutations() -> list[Mutation]:
    """Return every mutation of every table."""
    return [mutation for table in TABLES.values() for mutation in mutations_of(table)]


def chosen(mutations: list[Mutation], only: list[str]) -> list[Mutation]:
    """Return the mutations that `only` names (a role, a row, or one mutation); ValueError for a stranger."""
    out = []
    for wanted in only:
        found = [m for m in mutations if wanted in (m.role, m.place, str(m))]
        if not found:
            raise ValueError(
                f"there is no mutation {wanted!r}: name a role, a row as role:STATE/FACT, or one"
            )
        out += found
    return list(dict.fromkeys(out))


def sampled(mutations: list[Mutation]) -> list[Mutation]:
    """Return a fixed share: a few of each kind, from all over the tables."""
    out = []
    for group in dict.fromkeys(m.group for m in mutations):
        own = [m for m in mutations if m.group == group]
        out += own[:: len(own) // SAMPLE_OF_KIND + 1]
    return out


def apply(mutation: Mutation) -> None:
    """Make the row wrong, in this process, for good."""
    rows: dict[Any, Any] = TABLES[mutation.role].rows  # type: ignore[assignment]
    if mutation.row is None:
        del rows[mutation.key]
        return
    rows[mutation.key] = mutation.row
    core = CORES[mutation.role]
    for prefix in ("_do_", "_absent_"):
        setattr(core, prefix + SILENT, _do_nothing)


def _do_nothing(*_facts: object) -> None:
    """The silenced action."""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Make the row wrong, and right again."""
    rows: dict[Any, Any] = TABLES[mutation.role].rows  # type: ignore[assignment]
    before = dict(rows)
    try:
        apply(mutation)
        yield
    finally:
        rows.clear()
        rows.update(before)
