"""What the decode node keeps: leases, attempts, tombstones, writers, poison; and how a row is taken.

`_fire` is the only place where a lease's state changes, and `_free_poisoned` the only one where a poisoned
page comes home. Every container has a bound in `DecodeConfig`, or is bounded by one that has.
"""

from dataclasses import dataclass, field
from enum import Enum, unique

from kvfence.protocol import commands, events
from kvfence.protocol.config import DecodeConfig
from kvfence.protocol.decisions import Decisions, Expectation
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_table import DecodeFact, DecodeState
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageLedger, PageState
from kvfence.protocol.machine import Machine, StepBook, count_states
from kvfence.protocol.tables import DECODE, Transition
from kvfence.protocol.words import (
    AttemptId,
    Done,
    EndReason,
    IntegrityReason,
    LeaseId,
    Manifest,
    PageRef,
    Peer,
    Refusal,
    Timer,
    TimerKind,
)

ROW_STATES = (DecodeState.RUNNING, DecodeState.WAITING)


@unique
class Reach(Enum):
    """Whether a writer incarnation can still write here."""

    WRITING = "writing"  # known and alive
    CUTTING = "cutting"  # a cut was asked for
    UNCUT = "uncut"  # a cut could not be proven: shown, and kept


@dataclass(frozen=True, slots=True)
class Refusing:
    """A reservation that is not taken, and why."""

    event: events.Reserve
    refusal: Refusal


@dataclass(slots=True)
class Poison:
    """A poisoned page waits for all who could write to the pool when it was found, and for its lease."""

    lease: LeaseId
    writers: set[Peer] = field(default_factory=set)


class DecodeRecords(Machine):
    """The records of a decode node, how a row is taken, and what is asked of them all."""

    def __init__(self, me: Peer, config: DecodeConfig, decisions: Decisions, ledger: PageLedger) -> None:
        super().__init__(me, decisions, config.peers_max)
        self.config = config
        self.ledger = ledger
        self.leases: dict[LeaseId, DecodeLease] = {}  # in order of their sequence numbers
        self.attempts: dict[AttemptId, LeaseId] = {}
        self.over: dict[AttemptId, None] = {}  # tombstones, oldest first
        self.waiting: list[LeaseId] = []  # rows that wait for a page, first in first out
        self.writers: dict[Peer, Reach] = {}
        self.poisoned: dict[int, Poison] = {}
        self.steps = StepBook(config.steps_max)
        self.next_sequence = 1
        self._lowest_told = 1
        self._touched: dict[LeaseId, None] = {}
        self._silent: dict[Peer, None] = {}  # writers that left too many Close unanswered

    # ------------------------------------------------------------ what others may read
    @property
    def lowest_live(self) -> int:
        """Lowest sequence number that is not freed yet (the next one when nothing is leased)."""
        first = next(iter(self.leases), None)
        return self.next_sequence if first is None else first.sequence

    @property
    def uncut(self) -> list[Peer]:
        """Writer incarnations whose cut could not be proven."""
        return sorted(peer for peer, reach in self.writers.items() if reach is Reach.UNCUT)

    @property
    def closing_leases(self) -> list[LeaseId]:
        """Leases in quarantine: ended, but a writer or a step may be left."""
        return [k for k, record in self.leases.items() if record.state is DecodeState.CLOSING]

    @property
    def lease_counts(self) -> dict[str, int]:
        """How many leases are in each state, by the state's name."""
        return count_states(DecodeState, self.leases.values())

    @property
    def pool_tokens(self) -> int:
        """What a request may need at most."""
        return self.ledger.pages * self.config.page_tokens

    # ------------------------------------------------------------ firing
    def _fire(self, record: DecodeLease, fact: DecodeFact, event: object = None) -> None:
        row = DECODE.find(record.state, fact)
        self.trail.append(Transition(record.lease, record.state, fact, row.next_state, row.action))
        record.state = row.next_state
        self._touched[record.lease] = None
        getattr(self, f"_do_{row.action}")(record, event)

    def _fire_absent(self, key: LeaseId | AttemptId, fact: DecodeFact, event: object) -> None:
        """Take a row of ABSENT. A missing one passes through CLOSING with nothing to close."""
        row = DECODE.find(DecodeState.ABSENT, fact)
        self.trail.append(Transition(key, DecodeState.ABSENT, fact, row.next_state, row.action))
        if row.next_state is DecodeState.CLOSING:
            self._count("illegal")
            if isinstance(key, LeaseId):
                self._say(commands.StopRow(key))
            home = DECODE.find(DecodeState.CLOSING, DecodeFact.QUIET)
            self.trail.append(
                Transition(key, DecodeState.CLOSING, DecodeFact.QUIET, home.next_state, "nothing")
            )
            return
        getattr(self, f"_absent_{row.action}")(event)

    # ------------------------------------------------------------ helpers
    def _is_owned(self, record: DecodeLease, page: int) -> bool:
        ledger = self.ledger
        return (
            0 <= page < ledger.total
            and ledger.owner[page] == record.lease.sequence
            and ledger.state[page] != PageState.FREE
        )

    def _ask_close(self, record: DecodeLease) -> None:
        record.closes_asked += 1
        if record.closes_asked > self.config.close_retries_max:
            self._silent[record.writer] = None
        writer = self.decisions.asked_writer(record.writer, self.peers.newest(record.writer.node))
        self._say(commands.SendClose(writer, record.lease))
        self._set_timer(record, TimerKind.CLOSE_RETRY, self.config.close_retry_ms)

    def _manifest(self, record: DecodeLease) -> Manifest:
        invariant(record.manifest is not None, f"{record.lease} has no manifest (law 3)")
        manifest: Manifest = record.manifest  # type: ignore[assignment]
        return manifest

    def _manifest_fault(self, record: DecodeLease, event: events.Closed) -> IntegrityReason | None:
        if not isinstance(event.outcome, Done):
            return None
        expectation = Expectation(
            lease=record.lease,
            writer=record.writer,
            tokens=record.tokens,
            pages=len(record.pages),
            token_hash=record.token_hash,
        )
        return self.decisions.manifest_fault(event.outcome.manifest, expectation)

    def _set_timer(self, record: DecodeLease, kind: TimerKind, after_ms: int) -> None:
        self._outdate(record, kind)
        self._say(commands.SetTimer(Timer(kind, record.lease), record.timers[kind], after_ms))

    def _outdate(self, record: DecodeLease, kind: TimerKind) -> None:
        record.timers[kind] = record.timers.get(kind, 0) + 1

    def _bury(self, attempt: AttemptId) -> None:
        self.over.pop(attempt, None)
        self.over[attempt] = None
        if len(self.over) > self.config.tombstones_max:
            del self.over[next(iter(self.over))]

    @property
    def quarantined_pages(self) -> int:
        """Pages that wait for a writer or are poisoned."""
        closing = sum(
            record.held_pages
            for record in self.leases.values()
            if record.state is DecodeState.CLOSING and not record.writer_is_quiet
        )
        return closing + self.ledger.count(PageState.POISONED)

    def _free_poisoned(self) -> None:
        """Give poisoned pages back whose lease is over and whose possible writers are all cut."""
        ready = [page for page, p in self.poisoned.items() if not p.writers and p.lease not in self.leases]
        if ready:
            for page in ready:
                del self.poisoned[page]
            self._say(commands.PagesFreed(self.ledger.clear(ready)))

    def _grant_waiting(self) -> None:
        while self.waiting and self.ledger.count(PageState.FREE) > 0:
            self._fire(self.leases[self.waiting.pop(0)], DecodeFact.PAGE_CAME)

    def _comes_soon(self, record: DecodeLease) -> bool:
        was_preempted = record.end is not None and record.end.reason is EndReason.PREEMPTED
        return record.writer_is_quiet or was_preempted

    def _coming_pages(self) -> int:
        """Pages that only wait for launched steps, or whose lease was preempted to get them."""
        coming = 0
        for record in self.leases.values():
            if record.state is DecodeState.CLOSING and self._comes_soon(record):
                coming += record.held_pages
            elif record.original is not None:
                coming += 1
        return coming

    def _lose_refs(self, refs: tuple[PageRef, ...]) -> None:
        self._say(commands.PagesFreed(self.ledger.free(refs)))
