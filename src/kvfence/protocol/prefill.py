"""The prefill node's state machine: computes prompts into its own pages and writes them to decode.

It turns events into facts about one lease and lets the table say what follows (`prefill_table.py`,
actions in `prefill_actions.py`). After each event it settles: what is written is said to be done, what
can land no more is said to be closed, what nobody reads comes home.

On saying Closed: it promises that nothing will land later. A write that completed cannot, one that was
never posted cannot. A write that the transport gave up, or that was in flight when its connection was
destroyed, may: bytes can sit in a socket, a queue pair or a stopped process. So such a lease is not said
to be closed, however often decode asks; decode frees its pages by the cut of this incarnation. Only the
transport can break the silence, by proving that nothing of the old connection will land (`Reconnected`).
Destroying the connection proves something else: that nothing reads *our* pages any more, so that they
and the pins can be given back.

Law 8 is kept by matching, pinning and evicting in one step. It knows no time and no bytes.
"""

from typing import ClassVar

from kvfence.protocol import events
from kvfence.protocol.commands import PagesFreed
from kvfence.protocol.config import pages_for
from kvfence.protocol.ledger import PageState
from kvfence.protocol.memory import ClosedMemory
from kvfence.protocol.peers import Greeting
from kvfence.protocol.prefill_actions import PrefillActions
from kvfence.protocol.prefill_lease import PrefillLease
from kvfence.protocol.prefill_records import Admitted, Refusing
from kvfence.protocol.prefill_table import PrefillFact, PrefillState
from kvfence.protocol.words import (
    Failed,
    Failure,
    LeaseId,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Refused,
    Role,
    TimerKind,
)


class PrefillCore(PrefillActions):
    """Leases that this node writes, from Prefill to Closed."""

    HANDLERS: ClassVar = {
        events.Hello: "_on_hello",
        events.PeerLost: "_on_peer_lost",
        events.Expired: "_on_expired",
        events.DrainRequested: "_on_drain",
        events.Prefill: "_on_prefill",
        events.Abort: "_on_abort",
        events.Close: "_on_close",
        events.LowestLive: "_on_lowest_live",
        events.ChunkComputed: "_on_chunk",
        events.ExecutorFailed: "_on_executor_failed",
        events.WriteCompleted: "_on_written",
        events.WriteFailed: "_on_write_failed",
        events.ConnectionDestroyed: "_on_destroyed",
        events.Reconnected: "_on_reconnected",
        events.StepLaunched: "_on_launched",
        events.StepRetired: "_on_retired",
    }

    # ------------------------------------------------------------ peers
    def _on_hello(self, event: events.Hello) -> None:
        if event.role is Role.PREFILL:
            self._count("misdirected")
        elif not self._meet(event.sender, event.role):
            self._count("unknown_sender")

    def _meet(self, peer: Peer, role: Role) -> bool:
        greeting, older = self.peers.greet(peer, role)
        if greeting in (Greeting.STALE, Greeting.FULL):
            return False
        if older is not None:
            self._lose(older)
            self.memory.pop(older, None)
        if role is Role.DECODE and peer not in self.memory:
            self.memory[peer] = ClosedMemory(self.config.closed_max)
        if role is Role.DECODE and greeting is Greeting.BACK:
            self._say_all_again(peer)
        return True

    def _say_all_again(self, decode: Peer) -> None:
        """What was said while it was lost did not reach it; else it would wait for its leases' deadlines."""
        memory = self.memory[decode]
        for sequence in sorted(memory.outcomes.keys() - set(memory.silent())):
            self._repeat(decode, LeaseId(decode.incarnation, sequence))

    def _on_peer_lost(self, event: events.PeerLost) -> None:
        if self.peers.lose(event.peer):
            self._lose(event.peer)

    def _lose(self, peer: Peer) -> None:
        if peer in self.memory:
            self._destroy_connection(peer)
        for record in list(self.leases.values()):
            if record.router == peer:
                self._fire(record, PrefillFact.ROUTER_LOST)
            if record.decode == peer:
                self._fire(record, PrefillFact.DECODE_LOST)

    def _on_drain(self, _event: events.DrainRequested) -> None:
        self.is_draining = True

    # ------------------------------------------------------------ router
    def _on_prefill(self, event: events.Prefill) -> None:
        is_router = self.peers.is_alive(event.sender, Role.ROUTER)
        is_theirs = event.sender.incarnation == event.attempt.incarnation
        if not is_router or not is_theirs or event.lease.incarnation != event.decode.incarnation:
            self._count("unknown_sender")
            return
        record = self.leases.get(event.lease)
        if record is not None:
            is_same = record.attempt == event.attempt and record.decode == event.decode
            fact = PrefillFact.PREFILL_AGAIN if is_same else PrefillFact.PREFILL_OTHER
            self._fire(record, fact, event)
            return
        # The router may know a decode node that has not said hello here: a Prefill introduces it.
        newest = self.peers.newest(event.decode.node)
        is_new = newest is None or newest.incarnation < event.decode.incarnation
        if (is_new and not self._meet(event.decode, Role.DECODE)) or event.decode not in self.memory:
            self._count("unknown_sender")
        else:
            self._admit(event)

    def _admit(self, event: events.Prefill) -> None:
        is_closed = self.memory[event.decode].is_closed(event.lease.sequence)
        if self.decisions.refuses_late_prefill(lease_is_closed=is_closed):
            self._fire_absent(event.lease, PrefillFact.PREFILL_LATE, event)
            return
        answer = self._try_to_fit(event)
        is_refused = isinstance(answer, Refusing)
        fact = PrefillFact.PREFILL_REFUSED if is_refused else PrefillFact.PREFILL_FITS
        self._fire_absent(event.lease, fact, answer)

    def _try_to_fit(self, event: events.Prefill) -> Admitted | Refusing:
        """Refuse, or match, pin, evict and lease in one step (law 8)."""
        expected_pages = pages_for(len(event.tokens), self.config.page_tokens)
        if not event.tokens or len(event.pages) != expected_pages:
            return Refusing(event, Failed(Failure.ILLEGAL))
        tokens = self.decisions.fit_prompt(event.tokens, self.pool_tokens)
        if isinstance(tokens, Refusal):
            return Refusing(event, Refused(tokens))
        code = self._not_now(event)
        if code is not None:
            return Refusing(event, Refused(Refusal(code)))
        matched = self.prefix.match(event.domain, tokens)
        pinned = matched if self.decisions.pins_match() else ()
        self.ledger.pin(pinned)
        own = self._lease_pages(pages_for(len(tokens), self.config.page_tokens) - len(matched))
        if own is None:
            self.ledger.unpin(pinned)
            return Refusing(event, Refused(Refusal(RefusalCode.BUSY)))
        owner = self.next_owner
        self.next_owner += 1
        return Admitted(event, tokens, self.ledger.refs(matched), pinned, own, owner)

    def _not_now(self, event: events.Prefill) -> RefusalCode | None:
        if event.attempt in self.over or event.attempt in self.attempts:
            return RefusalCode.STALE
        if self.is_draining:
            return RefusalCode.DRAINING
        is_reachable = self.peers.is_alive(event.decode, Role.DECODE) and event.decode not in self.destroying
        if not is_reachable or len(self.leases) >= self.config.leases_max:
            return RefusalCode.BUSY
        return None

    def _lease_pages(self, n: int) -> tuple[PageRef, ...] | None:
        """Lease `n` pages, evicting cached prefix pages where FREE ones do not suffice."""
        free = self.ledger.count(PageState.FREE)
        if n > free + self.ledger.count(PageState.CACHED):
            return None
        if n > free:
            evicted = self.prefix.evict(n - free)
            if evicted:
                self._say(PagesFreed(self.ledger.evict(evicted)))
        return self.ledger.lease(n, self.next_owner)

    def _on_abort(self, event: events.Abort) -> None:
        is_router = self.peers.is_alive(event.sender, Role.ROUTER)
        if not is_router or event.sender.incarnation != event.attempt.incarnation:
            self._count("unknown_sender")
            return
        lease = self.attempts.get(event.attempt)
        if lease is None:
            self._fire_absent(event.attempt, PrefillFact.ABORT, event)
        else:
            self._fire(self.leases[lease], PrefillFact.ABORT, event)

    # ------------------------------------------------------------ decode
    def _on_close(self, event: events.Close) -> None:
        if event.sender not in self.memory or event.lease.incarnation != event.sender.incarnation:
            self._count("unknown_sender")
            return
        self._fire_lease(event.lease, PrefillFact.CLOSE, event)

    def _on_lowest_live(self, event: events.LowestLive) -> None:
        if event.sender not in self.memory:
            self._count("unknown_sender")
            return
        self.memory[event.sender].rise(event.sequence)
        for record in list(self.leases.values()):
            if record.decode == event.sender and record.lease.sequence < event.sequence:
                self._fire(record, PrefillFact.FORGOTTEN)

    # ------------------------------------------------------------ executor
    def _on_chunk(self, event: events.ChunkComputed) -> None:
        record = self.leases.get(event.lease)
        fact = PrefillFact.CHUNK if record is None else self._chunk_fact(record, event)
        self._fire_lease(event.lease, fact, event)

    def _chunk_fact(self, record: PrefillLease, event: events.ChunkComputed) -> PrefillFact:
        is_last = event.tokens_done == len(record.tokens)
        has_grown = record.computed_tokens < event.tokens_done <= len(record.tokens)
        if not has_grown or is_last != (event.first_token is not None):
            return PrefillFact.CHUNK_WRONG
        return PrefillFact.LAST_CHUNK if is_last else PrefillFact.CHUNK

    def _on_executor_failed(self, event: events.ExecutorFailed) -> None:
        self._fire_lease(event.lease, PrefillFact.EXECUTOR_FAILED, event)

    def _on_launched(self, event: events.StepLaunched) -> None:
        for lease in self.steps.launch(event):
            if lease in self.leases:
                self.leases[lease].steps += 1
            self._fire_lease(lease, PrefillFact.LAUNCHED, event)

    def _on_retired(self, event: events.StepRetired) -> None:
        for lease in self.steps.retire(event):
            record = self.leases.get(lease)
            if record is not None:
                record.steps -= 1
                self._fire(record, PrefillFact.RETIRED, event)

    # ------------------------------------------------------------ transport
    def _on_written(self, event: events.WriteCompleted) -> None:
        record = self.leases.get(event.lease)
        if record is None or event.batch not in record.in_flight:
            self._fire_lease(event.lease, PrefillFact.WRITE_STRAY, event)
            return
        if record.state is PrefillState.CLOSING:
            record.in_flight.discard(event.batch)
            record.stopped.discard(event.batch)
        self._fire(record, PrefillFact.WRITTEN, event)

    def _on_write_failed(self, event: events.WriteFailed) -> None:
        record = self.leases.get(event.lease)
        if record is None or event.batch not in record.in_flight:
            self._fire_lease(event.lease, PrefillFact.WRITE_STRAY, event)
        elif self.decisions.failed_write_counts():
            self._on_written(events.WriteCompleted(event.lease, event.batch))
        elif event.quiet:
            record.in_flight.discard(event.batch)
            record.stopped.discard(event.batch)
            self._fire(record, PrefillFact.WRITE_DROPPED, event)
        else:
            self._fire(record, PrefillFact.WRITE_FAILED, event)

    def _on_destroyed(self, event: events.ConnectionDestroyed) -> None:
        """Nothing of ours is read any more; what had not completed is unproven for ever."""
        self.destroying.discard(event.peer)
        for record in list(self.leases.values()):
            if record.decode == event.peer:
                record.unproven |= record.in_flight | record.lost
                record.in_flight.clear()
                record.stopped.clear()
                record.lost.clear()
                self._fire(record, PrefillFact.DESTROYED, event)

    def _on_reconnected(self, event: events.Reconnected) -> None:
        """What was unproven is proven now: silent leases can be said to be closed after all."""
        for record in list(self.leases.values()):
            if record.decode == event.peer:
                record.unproven.clear()
                self._fire(record, PrefillFact.RECONNECTED, event)
        memory = self.memory.get(event.peer)
        for sequence in [] if memory is None else memory.silent():
            lease = LeaseId(event.peer.incarnation, sequence)
            self._fire_absent(lease, PrefillFact.RECONNECTED, lease)

    def _on_expired(self, event: events.Expired) -> None:
        key = event.timer.key
        is_batch = event.timer.kind is TimerKind.BATCH and isinstance(key, tuple)
        record = self.leases.get(key[0]) if is_batch and isinstance(key, tuple) else None
        if record is None or self._batch_of(event) not in record.in_flight - record.stopped:
            self._count("stale_timer")
            return
        self._fire(record, PrefillFact.BATCH_DEADLINE, event)

    # ------------------------------------------------------------ settling
    def _fire_lease(self, lease: LeaseId, fact: PrefillFact, event: object) -> None:
        record = self.leases.get(lease)
        if record is None:
            self._fire_absent(lease, fact, event)
        else:
            self._fire(record, fact, event)

    def _settle(self) -> None:
        while self._touched:
            lease = next(iter(self._touched))
            del self._touched[lease]
            if lease in self.leases:
                self._settle_lease(self.leases[lease])

    def _settle_lease(self, record: PrefillLease) -> None:
        in_flight = len(record.in_flight)
        may_be_done = record.state is PrefillState.SENDING and not record.lost
        owed = self.decisions.owed_pages(len(record.targets), len(record.pages))
        if may_be_done and self.decisions.is_written(record.posted_pages, owed, in_flight):
            self._fire(record, PrefillFact.ALL_WRITTEN)
        if record.state is not PrefillState.CLOSING:
            return
        lost = len(record.lost) + len(record.unproven)
        if not record.was_said and self.decisions.posts_are_quiet(in_flight, lost):
            self._fire(record, PrefillFact.POSTS_QUIET)
        if self.decisions.sources_are_quiet(record.steps, in_flight + len(record.lost)):
            self._fire(record, PrefillFact.QUIET)
