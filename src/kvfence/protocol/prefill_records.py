"""What the prefill node keeps: leases, attempts, tombstones, what it has closed; and how a row is taken.

`_fire` is the only place where a lease's state changes. Every container has a bound in `PrefillConfig`, or
is bounded by one that has.
"""

from dataclasses import dataclass

from kvfence.protocol import commands, events
from kvfence.protocol.config import PrefillConfig
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.machine import Machine, StepBook, count_states
from kvfence.protocol.memory import ClosedMemory
from kvfence.protocol.prefill_lease import PrefillLease
from kvfence.protocol.prefill_table import PrefillFact, PrefillState
from kvfence.protocol.prefix_source import PrefixSource
from kvfence.protocol.tables import PREFILL, Transition
from kvfence.protocol.words import (
    AttemptId,
    LeaseId,
    Outcome,
    PageRef,
    Peer,
)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A Prefill that fits: what is computed, into which pages."""

    event: events.Prefill
    tokens: tuple[int, ...]
    prefix: tuple[PageRef, ...]
    pinned: tuple[int, ...]
    own: tuple[PageRef, ...]
    owner: int


@dataclass(frozen=True, slots=True)
class Refusing:
    """A Prefill that is not taken, with what decode will be told."""

    event: events.Prefill
    outcome: Outcome


class PrefillRecords(Machine):
    """The records of a prefill node, how a row is taken, and what is asked of them all."""

    def __init__(
        self,
        me: Peer,
        config: PrefillConfig,
        decisions: Decisions,
        ledger: PageLedger,
        prefix: PrefixSource,
    ) -> None:
        super().__init__(me, decisions, config.peers_max)
        self.config = config
        self.ledger = ledger
        self.prefix = prefix
        self.leases: dict[LeaseId, PrefillLease] = {}
        self.attempts: dict[AttemptId, LeaseId] = {}
        self.over: dict[AttemptId, None] = {}  # aborted before they came, oldest first
        self.memory: dict[Peer, ClosedMemory] = {}  # of the newest incarnation of each decode node
        self.destroying: set[Peer] = set()  # connections that are being torn down
        self.steps = StepBook(config.steps_max)
        self.next_owner = 1
        self._touched: dict[LeaseId, None] = {}

    # ------------------------------------------------------------ what others may read
    @property
    def pool_tokens(self) -> int:
        """The longest prompt that can be computed here."""
        return self.ledger.pages * self.config.page_tokens

    @property
    def closing_leases(self) -> list[LeaseId]:
        """Leases whose pages wait for a write or a step."""
        return [k for k, record in self.leases.items() if record.state is PrefillState.CLOSING]

    @property
    def lease_counts(self) -> dict[str, int]:
        """How many leases are in each state, by the state's name."""
        return count_states(PrefillState, self.leases.values())

    # ------------------------------------------------------------ firing
    def _fire(self, record: PrefillLease, fact: PrefillFact, event: object = None) -> None:
        row = PREFILL.find(record.state, fact)
        self.trail.append(Transition(record.lease, record.state, fact, row.next_state, row.action))
        record.state = row.next_state
        self._touched[record.lease] = None
        getattr(self, f"_do_{row.action}")(record, event)

    def _fire_absent(self, key: LeaseId | AttemptId, fact: PrefillFact, event: object) -> None:
        """Take a row of ABSENT. A missing one passes through CLOSING with nothing to close."""
        row = PREFILL.find(PrefillState.ABSENT, fact)
        self.trail.append(Transition(key, PrefillState.ABSENT, fact, row.next_state, row.action))
        if row.next_state is PrefillState.CLOSING:
            self._count("illegal")
            if isinstance(key, LeaseId):
                self._say(commands.StopPrefill(key))
            home = PREFILL.find(PrefillState.CLOSING, PrefillFact.QUIET)
            self.trail.append(
                Transition(key, PrefillState.CLOSING, PrefillFact.QUIET, home.next_state, "nothing")
            )
            return
        getattr(self, f"_absent_{row.action}")(event)

    # ------------------------------------------------------------ helpers
    def _memory_of(self, decode: Peer) -> ClosedMemory:
        """Return the memory of a decode incarnation; a superseded one gets a blank that is not kept."""
        return self.memory.get(decode) or ClosedMemory(self.config.closed_max)

    def _repeat(self, decode: Peer, lease: LeaseId) -> None:
        outcome = self._memory_of(decode).outcome(lease.sequence)
        if outcome is None:
            self._count("unanswered_close")
        else:
            self._say(commands.SendClosed(decode, lease, outcome))

    def _batch_of(self, event: events.Expired) -> int:
        key = event.timer.key
        invariant(isinstance(key, tuple), f"a batch timer is named (lease, batch), not {key}")
        batch: int = key[1]  # type: ignore[index]
        return batch
