"""How a table is read, and the three tables by name.

A table is data: `(state, fact) -> Row(next state, action)`. A fact is what an event means for one
record: the core classifies the event (and asks `Decisions`), the table says what follows. Three rules
hold for every table and live here once:

- a missing row is illegal: the record moves to CLOSING by the action `fail_closed`;
- CLOSING alone has no missing rows: what it does not know it counts and ignores (`ignore`);
- ABSENT, the state of what is unknown, is a state like the others.

The node, the simulator, the model checker, the diagrams in `docs/protocol.md` and the row-coverage
report read the same tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from kvfence.protocol.decode_table import DECODE_TABLE, DecodeFact, DecodeState
from kvfence.protocol.prefill_table import PREFILL_TABLE, PrefillFact, PrefillState
from kvfence.protocol.router_table import ROUTER_TABLE, RouterFact, RouterState
from kvfence.protocol.rows import Row

State = TypeVar("State", bound=Enum)
Fact = TypeVar("Fact", bound=Enum)

FAIL_CLOSED = "fail_closed"
IGNORE = "ignore"


class Transition(NamedTuple):
    """One row as it was taken. `key` names the record (a lease, an attempt or a request)."""

    key: object
    state: Enum
    fact: Enum
    next_state: Enum
    action: str


@dataclass(frozen=True, slots=True)
class Table(Generic[State, Fact]):
    """One role's rows, with the two states that every role has."""

    role: str
    record: str  # what one record of this table stands for
    rows: Mapping[tuple[State, Fact], Row[State]]
    states: type[State]
    facts: type[Fact]
    absent: State
    closing: State

    def find(self, state: State, fact: Fact) -> Row[State]:
        """Return the row, or what stands for a missing one."""
        row = self.rows.get((state, fact))
        if row is not None:
            return row
        return Row(self.closing, IGNORE if state is self.closing else FAIL_CLOSED)


DECODE = Table(
    role="decode",
    record="a lease",
    rows=DECODE_TABLE,
    states=DecodeState,
    facts=DecodeFact,
    absent=DecodeState.ABSENT,
    closing=DecodeState.CLOSING,
)
PREFILL = Table(
    role="prefill",
    record="a lease that this node writes",
    rows=PREFILL_TABLE,
    states=PrefillState,
    facts=PrefillFact,
    absent=PrefillState.ABSENT,
    closing=PrefillState.CLOSING,
)
ROUTER = Table(
    role="router",
    record="a request with its current attempt",
    rows=ROUTER_TABLE,
    states=RouterState,
    facts=RouterFact,
    absent=RouterState.ABSENT,
    closing=RouterState.CLOSING,
)
