"""What an exploration says of a scope: why it ended, what it counted, what it found.

Plain data; nothing here searches.
"""

from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from kvfence.protocol.tables import DECODE, PREFILL, ROUTER, Table
from kvfence.verification.remembered import Taken
from kvfence.verification.scopes import Scope
from kvfence.world import Finding
from kvfence.world.happenings import Happening


@unique
class Why(Enum):
    """Why a search ended."""

    CLOSED = "closed"  # every state that can be reached was visited
    FOUND = "found"
    DEPTH = "depth"  # the scope says how deep it goes
    STATES = "states"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A shortest run to something that must never happen."""

    scope: Scope
    happenings: tuple[Happening, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Homing:
    """The way home in a scope that closed.

    `stranded` is a shortest run to a state without a way home. `rounds` are components in which free moves
    can go round without coming home; of those a fair run must leave `left` because something is possible in
    all of their states and only outside of them done, `timed` because a deadline passes meanwhile.
    `livelock` is a run into one of the others, and once round.
    """

    states: int
    edges: int
    homes: int
    stranded_states: int
    rounds: int
    left: int
    timed: int
    stranded: Counterexample | None = None
    livelock: Counterexample | None = None

    @property
    def kept(self) -> int:
        """In how many a fair run can stay."""
        return self.rounds - self.left - self.timed

    @property
    def counterexample(self) -> Counterexample | None:
        """What was found, if anything was."""
        return self.stranded or self.livelock


@dataclass(frozen=True, slots=True, kw_only=True)
class Walks:
    """Walks home from the last layer of a scope that did not close: from `walked` of its `states`."""

    states: int
    walked: int
    longest: int
    lost: Counterexample | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a search did. `homing` or `walks` are there where they were asked for."""

    scope: Scope
    why: Why
    states: int
    transitions: int
    depth: int
    performed: int  # happenings that the cores performed; the others were remembered
    taken: frozenset[Taken]
    seconds: float
    stored_bytes: int
    peak_mib: int
    counterexample: Counterexample | None
    homing: Homing | None = None
    walks: Walks | None = None

    @property
    def rows_taken(self) -> int:
        """How many rows of the three tables were taken (what is illegal has no row)."""
        tables: dict[str, Table[Any, Any]] = {
            "RouterCore": ROUTER,
            "PrefillCore": PREFILL,
            "DecodeCore": DECODE,
        }
        return sum((state, fact) in tables[core].rows for core, state, fact in self.taken)


@dataclass(frozen=True, slots=True)
class Level:
    """How far a search has come."""

    depth: int
    states: int
    frontier: int
    transitions: int
    seconds: float
