"""What the decode node does when a row of its table is taken: one method an action.

Actions change the lease's record and the ledger and give commands. They never choose a state: the row
did. The quarantine rule is kept in one place, `_enter_closing`, and law 4 in another, `_do_free`.
"""

from dataclasses import dataclass, field
from enum import Enum, unique

from kvfence.protocol import commands, events
from kvfence.protocol.config import DecodeConfig, pages_for
from kvfence.protocol.decisions import Decisions, Expectation
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_table import DecodeFact, DecodeState
from kvfence.protocol.errors import invariant
from kvfence.protocol.ledger import PageLedger, PageState
from kvfence.protocol.machine import Machine, StepBook
from kvfence.protocol.tables import DECODE, Transition
from kvfence.protocol.words import (
    AttemptId,
    Done,
    End,
    EndReason,
    Failed,
    Failure,
    IntegrityReason,
    LeaseId,
    Manifest,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Refused,
    Timer,
    TimerKind,
)

ROW_STATES = (DecodeState.RUNNING, DecodeState.WAITING)

_END_OF_FAILURE = {
    Failure.ABORTED: EndReason.TRANSFER,
    Failure.TRANSFER: EndReason.TRANSFER,
    Failure.EXECUTOR: EndReason.EXECUTOR,
    Failure.PEER_LOST: EndReason.PEER_LOST,
    Failure.ILLEGAL: EndReason.ILLEGAL,
}


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


class DecodeActions(Machine):
    """The actions of DecodeCore, and the records they work on."""

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
        self._touched: dict[LeaseId, None] = {}
        self._silent: dict[Peer, None] = {}  # writers that left too many Close unanswered

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

    # ------------------------------------------------------------ ABSENT
    def _absent_lease(self, event: events.Reserve) -> None:
        n = pages_for(event.tokens, self.config.page_tokens)
        sequence = self.next_sequence
        refs = self.ledger.lease(n + 1, sequence)
        invariant(refs is not None, "a reservation was classified as fitting but there are no pages")
        self.next_sequence += 1
        pages = refs or ()
        record = DecodeLease(
            lease=LeaseId(self.me.incarnation, sequence),
            attempt=event.attempt,
            router=event.sender,
            writer=event.writer,
            tokens=event.tokens,
            token_hash=event.token_hash,
            pages=pages[:-1],
            tail=pages[-1],
            state=DecodeState.RESERVED,
        )
        self.leases[record.lease] = record
        self.attempts[event.attempt] = record.lease
        self._say(commands.StampPages(record.lease, pages))
        self._set_timer(record, TimerKind.LEASE, self.config.lease_ms)
        self._do_answer_again(record)

    def _absent_refuse(self, refusing: Refusing) -> None:
        event = refusing.event
        self._count(f"refused_{refusing.refusal.code.value}")
        self._say(commands.SendReserveRefused(event.sender, event.attempt, refusing.refusal))

    def _absent_bury(self, event: events.Abort) -> None:
        self._bury(event.attempt)

    def _absent_ignore(self, _event: object) -> None:
        self._count("stray")

    # ------------------------------------------------------------ answers
    def _do_answer_again(self, record: DecodeLease, _event: object = None) -> None:
        self._say(commands.SendReserved(record.router, record.attempt, record.lease, record.pages))

    def _do_refuse_ended(self, record: DecodeLease, _event: object) -> None:
        self._say(commands.SendReserveRefused(record.router, record.attempt, Refusal(RefusalCode.STALE)))

    def _do_nothing(self, record: DecodeLease, event: object) -> None:
        """Take a row that only names what is legal."""

    def _do_ignore(self, _record: DecodeLease, _event: object) -> None:
        self._count("ignored_in_closing")

    # ------------------------------------------------------------ the good path
    def _do_verify(self, record: DecodeLease, event: events.Closed) -> None:
        record.writer_is_quiet = True
        self._outdate(record, TimerKind.LEASE)
        if isinstance(event.outcome, Done):
            record.manifest = event.outcome.manifest
        record.verifications += 1
        self._say(commands.VerifySeals(record.lease, self._manifest(record), record.pages))

    def _do_start(self, record: DecodeLease, _event: object) -> None:
        self.ledger.seal(record.pages)
        self.ledger.open((record.tail,))
        record.tail_is_owed = self.decisions.copies_tail(record.tokens, self.config.page_tokens)
        self._say(
            commands.StartRow(record.lease, record.attempt, self._manifest(record), record.pages, record.tail)
        )

    def _do_drop_original(self, record: DecodeLease, _event: object) -> None:
        record.tail_is_owed = False
        record.original = record.pages[-1]
        record.pages = record.pages[:-1]
        record.original_steps = self.steps.of(record.lease)
        self.ledger.close((record.original,))

    def _do_seal_page(self, _record: DecodeLease, event: events.PageSealed) -> None:
        self.ledger.seal((event.page,))

    def _do_grant(self, record: DecodeLease, _event: object) -> None:
        refs = self.ledger.lease(1, record.lease.sequence)
        invariant(refs is not None, "a page was granted but there is none")
        self._outdate(record, TimerKind.GROWTH)
        for ref in refs or ():
            self.ledger.open((ref,))
            record.grown.append(ref)
            self._say(commands.StampPages(record.lease, (ref,)))
            self._say(commands.GrantPage(record.lease, ref))

    def _do_wait(self, record: DecodeLease, _event: object) -> None:
        self.waiting.append(record.lease)
        self._set_timer(record, TimerKind.GROWTH, self.config.growth_ms)

    # ------------------------------------------------------------ ends
    def _do_abort(self, record: DecodeLease, _event: object) -> None:
        record.writer_is_quiet = record.writer_is_quiet or self.decisions.abort_is_quiet()
        self._enter_closing(record, End(EndReason.CLIENT_GONE))

    def _do_lose_router(self, record: DecodeLease, _event: object) -> None:
        record.writer_is_quiet = record.writer_is_quiet or self.decisions.abort_is_quiet()
        self._enter_closing(record, End(EndReason.PEER_LOST, detail="the router was lost"))

    def _do_lose_writer(self, record: DecodeLease, _event: object) -> None:
        record.writer_is_quiet = self.decisions.lost_is_quiet()
        self._enter_closing(record, End(EndReason.PEER_LOST, detail="the prefill node was lost"))

    def _do_fail_by_cut(self, record: DecodeLease, _event: object) -> None:
        record.writer_is_quiet = True
        self._enter_closing(record, End(EndReason.PEER_LOST, detail="the prefill node was cut"))

    def _do_pass_deadline(self, record: DecodeLease, _event: object) -> None:
        record.writer_is_quiet = self.decisions.deadline_is_quiet()
        self._enter_closing(record, End(EndReason.DEADLINE, detail="the writer had not closed"))

    def _do_preempt(self, record: DecodeLease, _event: object) -> None:
        self._count("preempted")
        self._enter_closing(record, End(EndReason.PREEMPTED))

    def _do_starve(self, record: DecodeLease, _event: object) -> None:
        if self.quarantined_pages > 0:
            refusal = Refusal(RefusalCode.QUARANTINE)
            end = End(EndReason.REFUSED, refusal=refusal, detail="the missing pages are quarantined")
        else:
            end = End(EndReason.PREEMPTED, detail="older requests hold the pages")
        self._enter_closing(record, end)

    def _do_finish(self, record: DecodeLease, event: events.RowFinished) -> None:
        self._enter_closing(record, event.end)

    def _do_report_outcome(self, record: DecodeLease, event: events.Closed) -> None:
        record.writer_is_quiet = True
        if isinstance(event.outcome, Refused):
            end = End(EndReason.REFUSED, refusal=event.outcome.refusal)
        else:
            failure = event.outcome.failure if isinstance(event.outcome, Failed) else Failure.ILLEGAL
            end = End(_END_OF_FAILURE[failure], detail=f"the prefill node gave up: {failure.value}")
        self._enter_closing(record, end)

    def _do_reject_manifest(self, record: DecodeLease, event: events.Closed) -> None:
        record.writer_is_quiet = True
        fault = self._manifest_fault(record, event)
        self._reject(record, fault or IntegrityReason.MANIFEST_PAGES)

    def _do_reject_pages(
        self, record: DecodeLease, event: events.SealsRejected | events.GuardRejected
    ) -> None:
        self._do_poison(record, event)
        self._reject(record, event.reason)

    def _do_fail_closed(self, record: DecodeLease, _event: object) -> None:
        self._count("illegal")
        came = self.trail[-1]
        detail = f"no row for {came.fact.name} in {came.state.name}"
        self._enter_closing(record, End(EndReason.ILLEGAL, detail=detail))

    # ------------------------------------------------------------ closing
    def _enter_closing(self, record: DecodeLease, end: End) -> None:
        """Quarantine: tell the router why, stop the row, ask a writer that is left to close."""
        record.end = end
        if self.trail[-1].state in ROW_STATES:
            self._say(commands.StopRow(record.lease))
        if record.lease in self.waiting:
            self.waiting.remove(record.lease)
        self._outdate(record, TimerKind.LEASE)
        self._outdate(record, TimerKind.GROWTH)
        self.ledger.close([ref for ref in record.held() if ref != record.original])
        self._say(commands.SendEnded(record.router, record.attempt, end))
        if not record.writer_is_quiet:
            self._ask_close(record)

    def _do_hear_closed(self, record: DecodeLease, _event: object) -> None:
        record.writer_is_quiet = True
        self._outdate(record, TimerKind.CLOSE_RETRY)

    def _do_ask_again(self, record: DecodeLease, _event: object) -> None:
        if not record.writer_is_quiet:
            self._ask_close(record)

    def _do_poison(self, record: DecodeLease, event: events.SealsRejected | events.GuardRejected) -> None:
        if not self.decisions.sets_poison_apart():
            return
        owned = [p for p in dict.fromkeys(event.poisoned) if self._is_owned(record, p)]
        fresh = [p for p in owned if p not in record.poisoned]
        self.ledger.poison(fresh)
        record.poisoned.update(fresh)
        for page in fresh:
            self.poisoned[page] = Poison(record.lease, set(self.writers))

    def _do_free(self, record: DecodeLease, _event: object) -> None:
        """Law 4 was asked before the row was taken; here the pages come home."""
        pages = self.ledger.free(record.held())
        del self.leases[record.lease]
        del self.attempts[record.attempt]
        self._bury(record.attempt)
        if pages:
            self._say(commands.PagesFreed(pages))

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
        self._say(commands.SendClose(record.writer, record.lease))
        self._set_timer(record, TimerKind.CLOSE_RETRY, self.config.close_retry_ms)

    def _reject(self, record: DecodeLease, reason: IntegrityReason) -> None:
        self._count(f"integrity_{reason.value}")
        self._enter_closing(record, End(EndReason.INTEGRITY, integrity=reason))

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
