"""The decode node's state machine: leases pages, verifies hand-overs, frees only what is quiet.

It turns events into facts about one lease and lets the table say what follows (`decode_table.py`,
actions in `decode_actions.py`). After each event it settles: what became quiet comes home, waiting rows
get pages, writers hear of the lowest live lease.

Rules kept here: law 3 (nothing is verified before the writer closed), law 4 (`_settle` asks before
anything is freed), law 5 (one state a lease), law 10 (only the newest incarnation speaks; a Closed
speaks only for its own lease). A writer that was lost stays lost: it comes back as a new incarnation.

It does not touch page content, and does not know time: stamps, seals, copies and timers are commands.
"""

from typing import ClassVar

from kvfence.protocol import commands, events
from kvfence.protocol.config import pages_for
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_records import Reach, Refusing
from kvfence.protocol.decode_settle import DecodeSettling
from kvfence.protocol.decode_table import DecodeFact, DecodeState
from kvfence.protocol.ledger import PageState
from kvfence.protocol.peers import Greeting
from kvfence.protocol.words import (
    Done,
    LeaseId,
    Peer,
    Refusal,
    RefusalCode,
    Role,
    TimerKind,
)

_DEADLINES = {
    TimerKind.LEASE: DecodeFact.LEASE_DEADLINE,
    TimerKind.CLOSE_RETRY: DecodeFact.CLOSE_DEADLINE,
    TimerKind.GROWTH: DecodeFact.GROWTH_DEADLINE,
}


class DecodeCore(DecodeSettling):
    """Leases, hand-overs, rows and their ends on one decode node."""

    HANDLERS: ClassVar = {
        events.Hello: "_on_hello",
        events.PeerLost: "_on_peer_lost",
        events.Cut: "_on_cut",
        events.CutUnknown: "_on_cut_unknown",
        events.Expired: "_on_expired",
        events.DrainRequested: "_on_drain",
        events.Reserve: "_on_reserve",
        events.Abort: "_on_abort",
        events.Closed: "_on_closed",
        events.SealsVerified: "_on_seals",
        events.SealsRejected: "_on_seals",
        events.GuardRejected: "_on_guard",
        events.PageWanted: "_on_page_wanted",
        events.PageSealed: "_on_page_sealed",
        events.TailCopied: "_on_tail_copied",
        events.StepLaunched: "_on_launched",
        events.StepRetired: "_on_retired",
        events.RowFinished: "_on_finished",
    }

    # ------------------------------------------------------------ peers
    def _on_hello(self, event: events.Hello) -> None:
        if event.role is Role.DECODE:
            self._count("misdirected")
            return
        is_writer = event.role is Role.PREFILL
        if is_writer and event.sender not in self.writers and len(self.writers) >= self.config.writers_max:
            self._count("writers_full")
            return
        if is_writer and self.peers.newest(event.sender.node) == event.sender:
            return  # known, or lost: a lost writer never comes back under the same incarnation
        greeting, older = self.peers.greet(event.sender, event.role)
        if greeting in (Greeting.STALE, Greeting.FULL):
            self._count("unknown_sender")
            return
        if older is not None:
            self._lose(older)
        if is_writer:
            self.writers[event.sender] = Reach.WRITING
            self._say(commands.SendLowestLive(event.sender, self.lowest_live))

    def _on_peer_lost(self, event: events.PeerLost) -> None:
        self.peers.lose(event.peer)
        self._lose(event.peer)

    def _on_cut(self, event: events.Cut) -> None:
        self.peers.lose(event.peer)
        self.writers.pop(event.peer, None)
        for poison in self.poisoned.values():
            poison.writers.discard(event.peer)
        for record in list(self.leases.values()):
            if record.writer == event.peer:
                self._fire(record, DecodeFact.WRITER_CUT)

    def _on_cut_unknown(self, event: events.CutUnknown) -> None:
        if event.peer not in self.writers:
            self._count("stray")
            return
        if self.decisions.unknown_cut_is_quiet():
            self._on_cut(events.Cut(event.peer))
            return
        self.peers.lose(event.peer)
        self.writers[event.peer] = Reach.UNCUT
        for record in list(self.leases.values()):
            if record.writer == event.peer and not record.writer_is_quiet:
                self._fire(record, DecodeFact.WRITER_LOST)

    def _on_drain(self, _event: events.DrainRequested) -> None:
        self.is_draining = True

    # ------------------------------------------------------------ router
    def _on_reserve(self, event: events.Reserve) -> None:
        if not self._may_speak(event.sender, event.attempt.incarnation):
            return
        lease = self.attempts.get(event.attempt)
        if lease is not None:
            self._fire(self.leases[lease], DecodeFact.RESERVE_AGAIN, event)
            return
        refusal = self._refusal(event)
        if refusal is None:
            self._fire_absent(event.attempt, DecodeFact.RESERVE_FITS, event)
        else:
            self._fire_absent(event.attempt, DecodeFact.RESERVE_REFUSED, Refusing(event, refusal))

    def _refusal(self, event: events.Reserve) -> Refusal | None:
        """Say why a new reservation is refused, or None when it fits now."""
        needed = event.tokens + event.max_tokens
        attempt_is_over = event.attempt in self.over
        if self.decisions.refuses_after_abort(attempt_is_over=attempt_is_over):
            return Refusal(RefusalCode.STALE)
        fits = self.decisions.fits_pool(needed, self.pool_tokens)
        if event.tokens < 1 or event.max_tokens < 1 or not fits:
            return Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=needed, limit_tokens=self.pool_tokens)
        if self.is_draining:
            return Refusal(RefusalCode.DRAINING)
        if not self.peers.is_alive(event.writer, Role.PREFILL):
            newest = self.peers.newest(event.writer.node)
            is_new = newest is None or newest.incarnation < event.writer.incarnation
            return Refusal(RefusalCode.BUSY if is_new else RefusalCode.STALE)
        if self.quarantined_pages * 100 > self.ledger.pages * self.config.quarantine_percent_max:
            return Refusal(RefusalCode.QUARANTINE)
        n = pages_for(event.tokens, self.config.page_tokens) + 1
        has_room = n <= self.ledger.count(PageState.FREE) and not self.waiting
        if not has_room or len(self.leases) >= self.config.leases_max:
            return Refusal(RefusalCode.BUSY)
        return None

    def _on_abort(self, event: events.Abort) -> None:
        if not self._may_speak(event.sender, event.attempt.incarnation):
            return
        lease = self.attempts.get(event.attempt)
        if lease is None:
            self._fire_absent(event.attempt, DecodeFact.ABORT, event)
        else:
            self._fire(self.leases[lease], DecodeFact.ABORT, event)

    def _may_speak(self, sender: Peer, incarnation: int) -> bool:
        """Law 10: the sender is the living router incarnation that the attempt belongs to."""
        if self.peers.is_alive(sender, Role.ROUTER) and sender.incarnation == incarnation:
            return True
        self._count("unknown_sender")
        return False

    # ------------------------------------------------------------ writer
    def _on_closed(self, event: events.Closed) -> None:
        record = self.leases.get(event.lease)
        if record is None:
            self._fire_absent(event.lease, DecodeFact.CLOSED_STRAY, event)
        elif not self.decisions.speaks_for(event.sender, record.writer):
            self._count("unknown_sender")
        else:
            self._fire(record, self._closed_fact(record, event), event)

    def _closed_fact(self, record: DecodeLease, event: events.Closed) -> DecodeFact:
        if record.writer_is_quiet:
            return DecodeFact.CLOSED_AGAIN
        if record.state is DecodeState.CLOSING:
            return DecodeFact.CLOSED_LATE
        if not isinstance(event.outcome, Done):
            return DecodeFact.CLOSED_SHORT
        is_bad = self._manifest_fault(record, event) is not None
        return DecodeFact.CLOSED_BAD if is_bad else DecodeFact.CLOSED_GOOD

    # ------------------------------------------------------------ executor
    def _on_seals(self, event: events.SealsVerified | events.SealsRejected) -> None:
        record = self.leases.get(event.lease)
        is_good = isinstance(event, events.SealsVerified) or not self.decisions.verifies_seals()
        fact = DecodeFact.SEALS_GOOD if is_good else DecodeFact.SEALS_BAD
        if record is not None and record.verifications:
            record.verifications -= 1
        self._fire_lease(event.lease, fact, event)

    def _on_guard(self, event: events.GuardRejected) -> None:
        self._fire_lease(event.lease, DecodeFact.GUARD_BAD, event)

    def _on_page_wanted(self, event: events.PageWanted) -> None:
        record = self.leases.get(event.lease)
        if record is not None and record.state is DecodeState.WAITING:
            fact = DecodeFact.PAGE_AGAIN
        elif self.ledger.count(PageState.FREE) > 0 and not self.waiting:
            fact = DecodeFact.PAGE_FREE
        else:
            fact = DecodeFact.PAGE_SHORT
        self._fire_lease(event.lease, fact, event)

    def _on_page_sealed(self, event: events.PageSealed) -> None:
        record = self.leases.get(event.lease)
        is_open = (
            record is not None
            and record.holds_open(event.page)
            and self.ledger.state[event.page.page] == PageState.OPEN
        )
        fact = DecodeFact.PAGE_SEALED if is_open else DecodeFact.PAGE_STRAY
        self._fire_lease(event.lease, fact, event)

    def _on_tail_copied(self, event: events.TailCopied) -> None:
        record = self.leases.get(event.lease)
        is_owed = record is not None and record.tail_is_owed
        fact = DecodeFact.TAIL_COPIED if is_owed else DecodeFact.TAIL_STRAY
        self._fire_lease(event.lease, fact, event)

    def _on_finished(self, event: events.RowFinished) -> None:
        self._fire_lease(event.lease, DecodeFact.FINISHED, event)

    def _on_launched(self, event: events.StepLaunched) -> None:
        for lease in self.steps.launch(event):
            if lease in self.leases:
                self.leases[lease].steps += 1
            self._fire_lease(lease, DecodeFact.LAUNCHED, event)

    def _on_retired(self, event: events.StepRetired) -> None:
        for lease in self.steps.retire(event):
            record = self.leases.get(lease)
            if record is not None:
                record.steps -= 1
                record.original_steps -= {event.step}
                self._fire(record, DecodeFact.RETIRED, event)

    def _fire_lease(self, lease: LeaseId, fact: DecodeFact, event: object) -> None:
        record = self.leases.get(lease)
        if record is None:
            self._fire_absent(lease, fact, event)
        else:
            self._fire(record, fact, event)

    # ------------------------------------------------------------ timers
    def _on_expired(self, event: events.Expired) -> None:
        key = event.timer.key
        record = self.leases.get(key) if isinstance(key, LeaseId) else None
        if record is None or record.timers.get(event.timer.kind) != event.generation:
            self._count("stale_timer")
            return
        self._fire(record, _DEADLINES[event.timer.kind], event)
