"""What the prefill node does when a row of its table is taken: one method an action.

Actions change the lease's record, the ledger and the closed memory, and give commands. They never choose
a state: the row did. Closed is said in one place, `_say_closed`; pages come home in one, `_do_give_back`.
"""

from kvfence.protocol import commands, events
from kvfence.protocol.errors import invariant
from kvfence.protocol.prefill_lease import PrefillLease
from kvfence.protocol.prefill_records import Admitted, PrefillRecords, Refusing
from kvfence.protocol.prefill_table import PrefillFact, PrefillState
from kvfence.protocol.tokens import hash_tokens
from kvfence.protocol.words import (
    Done,
    Failed,
    Failure,
    LeaseId,
    Manifest,
    Outcome,
    Peer,
    Timer,
    TimerKind,
)


class PrefillActions(PrefillRecords):
    """The actions of PrefillCore."""

    # ------------------------------------------------------------ ABSENT
    def _absent_start(self, admitted: Admitted) -> None:
        event = admitted.event
        cached_tokens = len(admitted.prefix) * self.config.page_tokens
        record = PrefillLease(
            lease=event.lease,
            attempt=event.attempt,
            router=event.sender,
            decode=event.decode,
            owner=admitted.owner,
            tokens=admitted.tokens,
            domain=event.domain,
            targets=event.pages,
            pages=(*admitted.prefix, *admitted.own),
            prefix_pages=len(admitted.prefix),
            pinned=admitted.pinned,
            state=PrefillState.COMPUTING,
            computed_tokens=cached_tokens,
            sealed_pages=len(admitted.prefix),
        )
        self.leases[record.lease] = record
        self.attempts[record.attempt] = record.lease
        self.ledger.open(record.own_pages)
        self._say(
            commands.StartPrefill(
                record.lease, record.attempt, record.tokens, record.pages, cached_tokens, record.owner
            )
        )
        self._publish_if_sealed(record)
        self._do_post_more(record)

    def _absent_refuse(self, refusing: Refusing) -> None:
        self._count("refused")
        event = refusing.event
        self._memory_of(event.decode).record(event.lease.sequence, refusing.outcome)
        self._say(commands.SendClosed(event.decode, event.lease, refusing.outcome))

    def _absent_answer_again(self, event: events.Prefill) -> None:
        self._count("late_prefill")
        self._repeat(event.decode, event.lease)

    def _absent_answer_close(self, event: events.Close) -> None:
        memory = self._memory_of(event.sender)
        if not memory.is_closed(event.lease.sequence):
            memory.record(event.lease.sequence, Failed(Failure.ABORTED))
        self._repeat(event.sender, event.lease)

    def _absent_bury(self, event: events.Abort) -> None:
        self.over.pop(event.attempt, None)
        self.over[event.attempt] = None
        if len(self.over) > self.config.tombstones_max:
            del self.over[next(iter(self.over))]

    def _absent_break_silence(self, lease: LeaseId) -> None:
        decode = next(peer for peer in self.memory if peer.incarnation == lease.incarnation)
        outcome = Failed(Failure.TRANSFER)
        self.memory[decode].record(lease.sequence, outcome)
        self._say(commands.SendClosed(decode, lease, outcome))

    def _absent_ignore(self, _event: object) -> None:
        self._count("stray")

    # ------------------------------------------------------------ computing and posting
    def _do_take_chunk(self, record: PrefillLease, event: events.ChunkComputed) -> None:
        record.computed_tokens = event.tokens_done
        self._seal_up_to(record, event.tokens_done // self.config.page_tokens)
        self._do_post_more(record)

    def _do_take_last_chunk(self, record: PrefillLease, event: events.ChunkComputed) -> None:
        record.computed_tokens = event.tokens_done
        record.first_token = event.first_token
        self._seal_up_to(record, len(record.pages))
        self._publish_if_sealed(record)
        self._do_post_more(record)

    def _seal_up_to(self, record: PrefillLease, pages: int) -> None:
        self.ledger.seal(record.pages[max(record.sealed_pages, record.early_pages) : pages])
        record.sealed_pages = max(record.sealed_pages, pages)

    def _publish_if_sealed(self, record: PrefillLease) -> None:
        """Law 8: asked at the start too, where the answer is no, so that the wrong answer can be tried."""
        if not self.decisions.publishes(sealed=record.sealed_pages == len(record.pages)):
            return
        full = len(record.tokens) // self.config.page_tokens
        if full > record.prefix_pages:
            if full > record.sealed_pages:  # only where `publishes` is wrong: what is shown is called sealed
                self.ledger.seal(record.pages[record.sealed_pages : full])
                record.early_pages = full
            tokens = record.tokens[: full * self.config.page_tokens]
            taken = self.prefix.publish(record.domain, tokens, record.pages[:full])
            own = {ref.page for ref in record.own_pages}
            record.published = frozenset(taken) & own

    def _do_post_more(self, record: PrefillLease, event: events.WriteCompleted | None = None) -> None:
        """Post what is sealed, while few batches are in flight and none is past its bound."""
        if event is not None:
            record.in_flight.discard(event.batch)
            record.stopped.discard(event.batch)
        while len(record.in_flight) < self.config.batches_in_flight_max and not record.stopped:
            ready = record.sealed_pages - record.posted_pages
            is_last = record.sealed_pages == len(record.pages)
            n = min(self.decisions.pages_to_post(ready, last=is_last), self.config.batch_pages)
            if n <= 0:
                return
            self._post(record, record.posted_pages, n)
            record.posted_pages += n

    def _post(self, record: PrefillLease, first: int, n: int) -> None:
        batch = record.next_batch
        record.next_batch += 1
        record.in_flight.add(batch)
        self._say(
            commands.PostBatch(
                record.lease,
                batch,
                record.decode,
                first,
                record.pages[first : first + n],
                record.targets[first : first + n],
            )
        )
        timer = Timer(TimerKind.BATCH, (record.lease, batch))
        self._say(commands.SetTimer(timer, 1, self.config.batch_ms))

    def _do_stop_posting(self, record: PrefillLease, event: events.Expired) -> None:
        batch = self._batch_of(event)
        record.stopped.add(batch)
        self._count("batch_deadline")
        self._say(commands.StopPosting(record.lease, batch))
        if self.decisions.reposts_at_deadline():  # the copy takes the batch's place
            record.in_flight.discard(batch)
            record.stopped.discard(batch)
            n = min(record.posted_pages, self.config.batch_pages)
            self._post(record, record.posted_pages - n, n)

    # ------------------------------------------------------------ ends
    def _do_say_done(self, record: PrefillLease, _event: object) -> None:
        invariant(record.first_token is not None, f"{record.lease} is written but has no first token")
        slots = [lease.first_token for lease in self.leases.values() if lease.first_token is not None]
        manifest = Manifest(
            lease=record.lease,
            writer=self.me,
            tokens=len(record.tokens),
            pages=record.posted_pages,
            token_hash=hash_tokens(record.tokens),
            first_token=self.decisions.first_token(record.first_token or 0, slots),
            first_position=len(record.tokens),
        )
        self._enter_closing(record, Done(self.decisions.claims(manifest)))
        self._say_closed(record)

    def _do_give_up_aborted(self, record: PrefillLease, _event: object) -> None:
        self._enter_closing(record, Failed(Failure.ABORTED))

    def _do_give_up_lost(self, record: PrefillLease, _event: object) -> None:
        self._enter_closing(record, Failed(Failure.PEER_LOST))

    def _do_give_up_executor(self, record: PrefillLease, _event: object) -> None:
        self._enter_closing(record, Failed(Failure.EXECUTOR))

    def _do_give_up_transfer(self, record: PrefillLease, _event: object) -> None:
        self._enter_closing(record, Failed(Failure.TRANSFER))

    def _do_give_up_connection(self, record: PrefillLease, event: events.WriteFailed) -> None:
        self._enter_closing(record, Failed(Failure.TRANSFER))
        self._do_destroy(record, event)

    def _do_fail_closed(self, record: PrefillLease, _event: object) -> None:
        self._count("illegal")
        self._enter_closing(record, Failed(Failure.ILLEGAL))

    def _enter_closing(self, record: PrefillLease, outcome: Outcome) -> None:
        """Nothing more is computed or posted; what was posted is left alone."""
        record.outcome = outcome
        if self.trail[-1].state is PrefillState.COMPUTING:
            self._say(commands.StopPrefill(record.lease))
        self.ledger.close(record.private_pages)

    # ------------------------------------------------------------ closing
    def _do_destroy(self, record: PrefillLease, event: events.WriteFailed) -> None:
        """Tear the connection down: every lease on it fails with this one."""
        record.in_flight.discard(event.batch)
        record.stopped.discard(event.batch)
        record.lost.add(event.batch)
        self._destroy_connection(record.decode)
        for other in list(self.leases.values()):
            if other.decode == record.decode and other is not record:
                self._fire(other, PrefillFact.CONNECTION_FAILED)

    def _destroy_connection(self, decode: Peer) -> None:
        if decode not in self.destroying:
            self.destroying.add(decode)
            self._say(commands.DestroyConnection(decode))

    def _do_say_closed(self, record: PrefillLease, _event: object) -> None:
        self._say_closed(record)

    def _say_closed(self, record: PrefillLease) -> None:
        """Record the lease as closed, then say so: a Prefill that arrives later is refused."""
        record.was_said = True
        self._memory_of(record.decode).record(record.lease.sequence, record.outcome)
        invariant(record.outcome is not None, f"{record.lease} is closed without an outcome")
        if record.outcome is not None:
            self._say(commands.SendClosed(record.decode, record.lease, record.outcome))

    def _do_answer_if_said(self, record: PrefillLease, _event: object) -> None:
        if record.was_said:
            self._repeat(record.decode, record.lease)

    def _do_give_back(self, record: PrefillLease, _event: object) -> None:
        """Law 4 was asked before the row was taken; here pages and pins come home.

        A lease with an unproven write stays silent: its bytes may land after any promise.
        """
        if not record.was_said:
            self._count("silent")
            self._memory_of(record.decode).record(record.lease.sequence, None)
        pages = self.ledger.free(record.private_pages)
        self.ledger.disown([ref for ref in record.own_pages if ref.page in record.published])
        self.ledger.unpin(record.pinned)
        del self.leases[record.lease]
        del self.attempts[record.attempt]
        if pages:
            self._say(commands.PagesFreed(pages))

    def _do_nothing(self, record: PrefillLease, event: object) -> None:
        """Take a row that only names what is legal."""

    def _do_ignore(self, _record: PrefillLease, _event: object) -> None:
        self._count("ignored_in_closing")
