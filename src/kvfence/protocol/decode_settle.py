"""What follows by itself on a decode node after each event: pages come home, waiting rows are served.

Law 4 is asked here before anything is freed. Waiting rows are served first in, first out; for them the
youngest lease makes way, never the oldest. A writer that does not answer is cut: time proves nothing.
"""

from kvfence.protocol import commands
from kvfence.protocol.decode_actions import DecodeActions
from kvfence.protocol.decode_lease import DecodeLease
from kvfence.protocol.decode_records import ROW_STATES, Reach
from kvfence.protocol.decode_table import DecodeFact, DecodeState
from kvfence.protocol.words import Peer


class DecodeSettling(DecodeActions):
    """The part of DecodeCore that draws conclusions."""

    def _lose(self, peer: Peer) -> None:
        """Start the cut of a lost writer and fail what it had open; abort what a lost router owned."""
        if peer in self.writers and self.writers[peer] is not Reach.CUTTING:
            self.writers[peer] = Reach.CUTTING
            self._say(commands.AskCut(peer))
        for record in list(self.leases.values()):
            if record.writer == peer:
                self._fire(record, DecodeFact.WRITER_LOST)
            if record.router == peer:
                self._fire(record, DecodeFact.ROUTER_LOST)

    # ------------------------------------------------------------ settling
    def _settle(self) -> None:
        self._settle_touched()
        self._relieve()
        self._free_poisoned()
        self._cut_silent_writers()
        lowest = self.lowest_live
        if lowest > self._lowest_told:
            self._lowest_told = lowest
            for writer, reach in self.writers.items():
                if reach is Reach.WRITING:
                    self._say(commands.SendLowestLive(writer, lowest))

    def _settle_touched(self) -> None:
        """Bring home what law 4 lets go among the leases of this step, then serve waiting rows."""
        while self._touched:
            lease = next(iter(self._touched))
            del self._touched[lease]
            record = self.leases.get(lease)
            if record is None:
                continue
            if record.original is not None and not record.original_steps:
                freed, record.original = record.original, None
                if freed.page not in record.poisoned:
                    self._lose_refs((freed,))
            quiet = self.decisions.may_free(
                record.steps + record.verifications, writer_is_quiet=record.writer_is_quiet
            )
            if record.state is DecodeState.CLOSING and quiet:
                self._fire(record, DecodeFact.QUIET)
            self._grant_waiting()

    def _relieve(self) -> None:
        """Preempt the youngest lease for a waiting row, never the oldest, until enough is coming."""
        for _ in range(len(self.leases) if self.waiting else 0):
            if len(self.waiting) <= self._coming_pages():
                return
            victim = self._victim()
            if victim is None:
                return
            self._fire(victim, DecodeFact.PREEMPTED)
            self._settle_touched()

    def _victim(self) -> DecodeLease | None:
        rows = [record for record in self.leases.values() if record.state in ROW_STATES]
        if len(rows) > 1:
            return rows[-1]
        if not rows:
            return None
        younger = [
            record
            for record in self.leases.values()
            if record.state in (DecodeState.RESERVED, DecodeState.VERIFYING)
            and record.lease.sequence > rows[0].lease.sequence
        ]
        return younger[-1] if younger else None

    def _cut_silent_writers(self) -> None:
        """A writer that left too many Close unanswered can only be cut: time proves nothing."""
        for writer in list(self._silent):
            del self._silent[writer]
            if self.writers.get(writer) is Reach.WRITING:
                self._count("silent_writer")
                self.peers.lose(writer)
                self._lose(writer)
                self._settle_touched()
