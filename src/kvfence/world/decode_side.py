"""What a decode node's process does in a world: stamps, verification, rows, the guard, forward passes.

Rules: what a pass reads is judged when it is launched and again when it retires; a pass writes where its
block table said at launch, whatever has become of those pages. It decides nothing that a core decides, and
asks of the decisions what a real node and its executor ask.
"""

from collections.abc import Iterator
from typing import ClassVar

from kvfence.protocol import DecodeCore, commands, events
from kvfence.protocol.commands import VerifySeals
from kvfence.protocol.ledger import PageState
from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import End, EndReason, IntegrityReason, LeaseId, PageRef, Peer
from kvfence.world.mail import Mail
from kvfence.world.memory import PADDING, Page, Seal, Slot, put, seal_fault
from kvfence.world.oracle import Kind, judge_reads, judge_unused
from kvfence.world.prefill_side import THE_STEP
from kvfence.world.records import Pass, Row


class DecodeSide(Mail):
    """Commands of DecodeCore, and the forward passes of its executor."""

    CARRY_OUT: ClassVar[dict[type, str]] = {
        **Mail.CARRY_OUT,
        commands.SetTimer: "_set_timer",
        commands.PagesFreed: "_nothing",
        commands.StampPages: "_stamp_pages",
        commands.SendReserved: "_send_reserved",
        commands.SendReserveRefused: "_send_reserve_refused",
        commands.VerifySeals: "_verify_seals",
        commands.StartRow: "_start_row",
        commands.GrantPage: "_grant_page",
        commands.StopRow: "_stop_row",
        commands.SendClose: "_send_close",
        commands.SendLowestLive: "_send_lowest_live",
        commands.SendEnded: "_send_ended",
        commands.AskCut: "_ask_cut",
    }

    # ------------------------------------------------------------ commands
    def _stamp_pages(self, peer: Peer, command: commands.StampPages, _event: Event) -> None:
        pool = self.pools[peer]
        for ordinal, ref in enumerate(command.pages):
            pool[ref.page] = Page(Seal(command.lease, ref.epoch, ordinal, 0, None), pool[ref.page].slots)

    def _send_reserved(self, peer: Peer, command: commands.SendReserved, _event: Event) -> None:
        core = self.decode_core(peer)
        records = () if core is None else core.leases.values()
        held = [record.lease for record in records if record.attempt == command.attempt]
        if len(held) > 1:
            self.find(Kind.TWO_LEASES, peer, f"{command.attempt} has {held[0]} and {held[-1]}")
        self.send(peer, command.router, events.Reserved(peer, command.attempt, command.lease, command.pages))

    def _send_reserve_refused(self, peer: Peer, command: commands.SendReserveRefused, _event: Event) -> None:
        refused = events.ReserveRefused(peer, command.attempt, command.refusal)
        self.send(peer, command.router, refused)

    def _verify_seals(self, peer: Peer, command: commands.VerifySeals, _event: Event) -> None:
        self.verifies[peer, command.lease] = command

    def _start_row(self, peer: Peer, command: commands.StartRow, _event: Event) -> None:
        core = self.decode_core(peer)
        record = None if core is None else core.leases.get(command.lease)
        if record is None:
            return
        table, copied = self._adopt(peer, command, record.tokens)
        request = command.attempt.request
        row = Row(command.attempt, record.router, table, len(command.pages) - copied, record.tokens)
        self.rows[peer, command.lease] = row
        if command.manifest.first_token != self.asks[request].token_at(record.tokens):
            what = f"request {request} starts with {command.manifest.first_token}, another one's first token"
            self.find(Kind.WRONG_TOKEN, peer, what)
        if copied:
            self.tell(peer, events.TailCopied(command.lease))
        self._release(peer, command.lease, row)

    def _adopt(self, peer: Peer, command: commands.StartRow, tokens: int) -> tuple[tuple[PageRef, ...], bool]:
        """Copy the partly filled last page into the tail, or open the tail as the next page."""
        size, pool, pages = self.config.page_tokens, self.pools[peer], command.pages
        valid = tokens % size
        if valid == 0:
            self._open_page(peer, command.lease, command.tail, len(pages))
            return (*pages, command.tail), False
        kept = pool[pages[-1].page].slots[:valid]
        self._judge_row(peer, command.lease, command.attempt.request, pages, tokens)
        rest: tuple[Slot | None, ...] = (None,) * (size - valid)
        if not self.decisions.zeroes_added_pages():
            rest = pool[command.tail.page].slots[valid:]
        seal = Seal(command.lease, command.tail.epoch, len(pages) - 1, valid, None)
        pool[command.tail.page] = Page(seal, (*kept, *rest))
        return (*pages[:-1], command.tail), True

    def _open_page(self, peer: Peer, lease: LeaseId, ref: PageRef, ordinal: int) -> None:
        slots = self.pools[peer][ref.page].slots
        if self.decisions.zeroes_added_pages():
            slots = (None,) * len(slots)
        self.pools[peer][ref.page] = Page(Seal(lease, ref.epoch, ordinal, 0, None), slots)

    def _grant_page(self, peer: Peer, command: commands.GrantPage, _event: Event) -> None:
        row = self.rows.get((peer, command.lease))
        if row is not None:
            self._open_page(peer, command.lease, command.page, len(row.table))
            self.rows[peer, command.lease] = row.grown(command.page)

    def _stop_row(self, peer: Peer, command: commands.StopRow, _event: Event) -> None:
        self.rows.pop((peer, command.lease), None)

    def _send_close(self, peer: Peer, command: commands.SendClose, _event: Event) -> None:
        self.send(peer, command.writer, events.Close(peer, command.lease))

    def _send_lowest_live(self, peer: Peer, command: commands.SendLowestLive, _event: Event) -> None:
        self.send(peer, command.writer, events.LowestLive(peer, command.sequence))

    def _send_ended(self, peer: Peer, command: commands.SendEnded, _event: Event) -> None:
        if command.end.integrity is not None:
            self.caught(command.end.integrity.value.partition("_")[0])
        self.send(peer, command.router, events.AttemptEnded(peer, command.attempt, command.end))

    def _ask_cut(self, peer: Peer, command: commands.AskCut, _event: Event) -> None:
        self.cuts[peer, command.peer] = None

    # ------------------------------------------------------------ verification
    def _verify(self, peer: Peer, lease: LeaseId) -> None:
        command = self.verifies.pop((peer, lease))
        core = self.decode_core(peer)
        lost = [
            ref for ref in command.pages if core is not None and not core.ledger.owns(lease.sequence, ref)
        ]
        if lost:
            self.find(Kind.LATE_STEP, peer, f"{lease} is verified in {lost[0]}, which it has no longer")
        reasons = list(self._page_faults(peer, command))
        if not reasons:
            self.tell(peer, events.SealsVerified(lease))
            return
        poisoned = tuple(page for page, why in reasons if why is not IntegrityReason.SEAL_UNWRITTEN)
        self.tell(peer, events.SealsRejected(lease, reasons[0][1], poisoned))

    def _page_faults(self, peer: Peer, command: VerifySeals) -> Iterator[tuple[int, IntegrityReason]]:
        core, size, pool = self.decode_core(peer), self.config.page_tokens, self.pools[peer]
        record = None if core is None else core.leases.get(command.lease)
        tokens = 0 if record is None else record.tokens
        for ordinal, ref in enumerate(command.pages):
            valid = min(size, tokens - ordinal * size)
            fault = seal_fault(pool[ref.page], Seal(command.lease, ref.epoch, ordinal, valid, None))
            if fault is not None:
                yield ref.page, fault

    # ------------------------------------------------------------ forward passes
    def _rows_ready(self, peer: Peer) -> list[tuple[LeaseId, Row]]:
        """Rows that have a slot for their next token, as many as a batch holds."""
        size = self.config.page_tokens
        ready = [
            (lease, row)
            for (node, lease), row in self.rows.items()
            if node == peer and row.position // size < len(row.table)
        ]
        return ready[: self.config.rows_max]

    def _launch_decode(self, peer: Peer) -> None:
        ready = self._guarded(peer, self._rows_ready(peer))
        if not ready:
            return
        tables = [row.table for _, row in ready]
        picked = [self.decisions.table_row(row, len(ready)) for row in range(len(ready))]
        batch = tuple(
            Pass(lease, row.attempt.request, tables[index], row.position, row.position + 1, lease)
            for index, (lease, row) in zip(picked, ready, strict=True)
        )
        self.passes[peer] = batch
        self._judge_batch(peer, batch)
        self.tell(peer, events.StepLaunched(THE_STEP, tuple(chunk.lease for chunk in batch)))

    def _guarded(self, peer: Peer, rows: list[tuple[LeaseId, Row]]) -> list[tuple[LeaseId, Row]]:
        """Take out and fail the rows in whose pages the guard finds another owner or trailer."""
        core = self.decode_core(peer)
        if not self.decisions.guards_steps() or core is None:
            return rows
        for lease, row in rows:
            bad = self._guard_fault(peer, core, lease, row)
            if bad is not None:
                self.tell(peer, events.GuardRejected(lease, bad[0], bad[1]))
                core = self.decode_core(peer) or core
        return [(lease, row) for lease, row in rows if (peer, lease) in self.rows]

    def _guard_fault(
        self, peer: Peer, core: DecodeCore, lease: LeaseId, row: Row
    ) -> tuple[IntegrityReason, tuple[int, ...]] | None:
        pool = self.pools[peer]
        for ordinal, ref in enumerate(row.table):
            if not core.ledger.owns(lease.sequence, ref):
                return IntegrityReason.GUARD_OWNER, ()
            seal = pool[ref.page].seal
            if seal is None or seal[:3] != (lease, ref.epoch, ordinal):
                return IntegrityReason.GUARD_SEAL, (ref.page,)
            if ordinal < row.received_pages and seal.digest is None:
                # As the engine's guard: a page that nobody has written since its stamp is not set apart.
                return IntegrityReason.GUARD_SEAL, ()
        return None

    def _judge_batch(self, peer: Peer, batch: tuple[Pass, ...]) -> None:
        for chunk in batch:
            self._judge_row(peer, chunk.lease, chunk.request, chunk.table, chunk.start)
            what = judge_unused(self.pools[peer], chunk.table, chunk.start, chunk.lease)
            if what is not None:
                self.find(Kind.DIRTY_PAGE, peer, f"request {chunk.request} {what}")

    def _judge_row(
        self, peer: Peer, lease: LeaseId, request: int, table: tuple[PageRef, ...], positions: int
    ) -> None:
        fault = judge_reads(self.pools[peer], table, self.asks, request, positions, lease)
        if fault is not None:
            self.find(fault[0], peer, fault[1])

    def _retire_decode(self, peer: Peer) -> None:
        batch = self.passes.pop(peer)
        self._judge_batch(peer, batch)
        self._write_batch(peer, batch)
        live = [(p.lease, self.rows[peer, p.lease]) for p in batch if (peer, p.lease) in self.rows]
        kept = self._guarded(peer, live)
        self.tell(peer, events.StepRetired(THE_STEP))
        for lease, _ in kept:
            row = self.rows.get((peer, lease))  # it may have made way for a row released before it
            if row is not None:
                row = row.advanced()
                self.rows[peer, lease] = row
                self._seal_own(peer, lease, row)
                self._release(peer, lease, row)

    def _write_batch(self, peer: Peer, batch: tuple[Pass, ...]) -> None:
        core, pool, size = self.decode_core(peer), self.pools[peer], self.config.page_tokens
        for chunk in batch:
            ref = chunk.table[min(chunk.start // size, len(chunk.table) - 1)]
            if core is not None and not core.ledger.owns(chunk.lease.sequence, ref):
                self.find(Kind.LATE_STEP, peer, f"{chunk.lease} steps into {ref}, which it has no longer")
            elif core is not None and core.ledger.state[ref.page] == PageState.SEALED:
                self.find(Kind.LATE_STEP, peer, f"{chunk.lease} steps into {ref}, which is sealed (law 1)")
            page = pool[ref.page]
            slot = Slot(chunk.request, chunk.start, chunk.lease)
            pool[ref.page] = Page(page.seal, put(page.slots, chunk.start % size, slot))
        reserved = len(pool) - 1
        padding = self.decisions.padding_page(reserved)
        if padding != reserved and len(batch) < self.config.rows_max:
            self.find(Kind.PADDING_WRITE, peer, f"a padding row writes to page {padding}")
            pool[padding] = Page(pool[padding].seal, put(pool[padding].slots, 0, PADDING))

    def _seal_own(self, peer: Peer, lease: LeaseId, row: Row) -> None:
        size = self.config.page_tokens
        full = row.position // size - 1
        if row.position % size == 0 and full >= row.received_pages:
            self.tell(peer, events.PageSealed(lease, row.table[full]))

    def _release(self, peer: Peer, lease: LeaseId, row: Row) -> None:
        """Send the row's latest token; end the row, or ask for the page that its next step needs."""
        self.send(peer, row.router, events.TokenMade(peer, row.attempt, row.position))
        ask = self.asks[row.attempt.request]
        if row.position - len(ask.prompt) + 1 >= ask.answer_tokens:
            is_short = ask.answer_tokens < ask.max_tokens
            reason = EndReason.STOP if is_short else EndReason.LENGTH
            self.tell(peer, events.RowFinished(lease, End(reason, next_position=row.position + 1)))
        elif row.position // self.config.page_tokens >= len(row.table):
            self.tell(peer, events.PageWanted(lease))
