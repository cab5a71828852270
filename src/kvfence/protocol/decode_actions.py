"""What the decode node does when a row of its table is taken: one method an action.

Actions change the lease's record and the ledger and give commands. They never choose a state: the row
did. The quarantine rule is kept in one place, `_enter_closing`, and law 4 in another, `_do_free`.
"""

from kvfence.protocol import commands, events
from kvfence.protocol.config import pages_for
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_records import ROW_STATES, DecodeRecords, Poison, Refusing
from kvfence.protocol.decode_table import DecodeState
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import (
    Done,
    End,
    EndReason,
    Failed,
    Failure,
    IntegrityReason,
    LeaseId,
    Refusal,
    RefusalCode,
    Refused,
    TimerKind,
)

_END_OF_FAILURE = {
    Failure.ABORTED: EndReason.TRANSFER,
    Failure.TRANSFER: EndReason.TRANSFER,
    Failure.EXECUTOR: EndReason.EXECUTOR,
    Failure.PEER_LOST: EndReason.PEER_LOST,
    Failure.ILLEGAL: EndReason.ILLEGAL,
}


class DecodeActions(DecodeRecords):
    """The actions of DecodeCore."""

    # ------------------------------------------------------------ ABSENT
    def _absent_lease(self, event: events.Reserve) -> None:
        n = pages_for(event.tokens, self.config.page_tokens)
        live = [lease.sequence for lease in self.leases]
        sequence = self.decisions.lease_number(self.next_sequence, live)
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
        record.writer_is_quiet = record.writer_is_quiet or self.decisions.illegal_is_quiet()
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
        if not record.writer_is_quiet and self.decisions.asks_again():
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

    def _reject(self, record: DecodeLease, reason: IntegrityReason) -> None:
        self._count(f"integrity_{reason.value}")
        self._enter_closing(record, End(EndReason.INTEGRITY, integrity=reason))
