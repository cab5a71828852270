"""Every row that a node took is a row of the shipped table, taken where its record stood.

Rules: a record begins and ends in ABSENT. On decode a reservation is filed under its attempt until it has a
lease, so that the row that grants one begins a record under the lease's name. What stands for a missing
row (`fail_closed`, `ignore`) is legal and reported: it says that a peer, or a node, did what no table knows.
"""

from collections.abc import Iterator
from typing import Any

from kvfence.protocol.commands import StampPages
from kvfence.protocol.tables import DECODE, FAIL_CLOSED, IGNORE, PREFILL, ROUTER, Table
from kvfence.protocol.words import AttemptId, LeaseId, Role
from kvfence.verification.conformance_steps import RowTaken, Step, ViolationKind

TABLES: dict[Role, Table[Any, Any]] = {Role.ROUTER: ROUTER, Role.PREFILL: PREFILL, Role.DECODE: DECODE}
Found = Iterator[tuple[ViolationKind, str]]


class RowCheck:
    """The records of one node, by the rows that it says it took."""

    def __init__(self, role: Role) -> None:
        self._table = TABLES[role]
        self._states: dict[int | LeaseId | AttemptId, str] = {}
        self.stand_ins = 0

    @property
    def left_open(self) -> int:
        """Records that have not come back to ABSENT."""
        return len(self._states)

    def take(self, step: Step) -> Found:
        """Look at the rows of one step; yield what is wrong with them."""
        before: RowTaken | None = None
        for row in step.rows:
            yield from self._look_up(row, before)
            yield from self._move(row, step)
            before = row

    def _look_up(self, row: RowTaken, before: RowTaken | None) -> Found:
        table = self._table
        if row.state not in table.states.__members__ or row.fact not in table.facts.__members__:
            yield ViolationKind.ROW, f"a {table.role} node knows no {row.fact} in {row.state}"
            return
        found = table.find(table.states[row.state], table.facts[row.fact])
        said = (row.next_state, row.action)
        # Nothing was there to close: the key passes through CLOSING, and its way home does nothing.
        passes = before is not None and (before.key, before.action) == (row.key, FAIL_CLOSED)
        if passes and before is not None and before.state == table.absent.name:
            if said != (table.absent.name, "nothing"):
                yield (
                    ViolationKind.ROW,
                    f"{row.fact} in {row.state} leads to ABSENT where nothing was there to close",
                )
        elif said != (found.next_state.name, found.action):
            leads = f"{found.next_state.name} by {found.action}, not to {row.next_state} by {row.action}"
            yield ViolationKind.ROW, f"{row.fact} in {row.state} leads to {leads}"
        is_row = (table.states[row.state], table.facts[row.fact]) in table.rows
        self.stand_ins += not is_row and found.action in (FAIL_CLOSED, IGNORE)

    def _move(self, row: RowTaken, step: Step) -> Found:
        absent = self._table.absent.name
        stood = self._states.get(row.key, absent)
        if row.state != stood:
            yield (
                ViolationKind.STATE,
                f"{name_key(row.key)} stood in {stood}, the row was taken in {row.state}",
            )
        if row.next_state == absent:
            self._states.pop(row.key, None)
        elif isinstance(row.key, AttemptId) and row.action != FAIL_CLOSED:
            yield from self._grant(row, step)
        else:
            self._states[row.key] = row.next_state

    def _grant(self, row: RowTaken, step: Step) -> Found:
        """The reservation of an attempt goes on under the name of its lease."""
        stamps = [command for command in step.commands if isinstance(command, StampPages)]
        fresh = [stamp.lease for stamp in stamps if stamp.lease not in self._states]
        if len(fresh) != 1:
            yield (
                ViolationKind.STATE,
                f"{name_key(row.key)} is reserved, and {len(fresh)} new leases are stamped",
            )
        for lease in fresh:
            self._states[lease] = row.next_state


def name_key(key: int | LeaseId | AttemptId) -> str:
    """Return a key for people."""
    if isinstance(key, LeaseId):
        return f"lease {key.incarnation}.{key.sequence}"
    if isinstance(key, AttemptId):
        return f"attempt {key.incarnation}.{key.request}.{key.number}"
    return f"request {key}"
