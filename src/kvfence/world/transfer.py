"""One-sided writes: how they land, complete, are given up, and come late.

Rules: the source is read when a piece lands, not when it was posted; the pages of a batch land in order,
batches in any. A write whose connection was destroyed, or whose process died, is an orphan: bytes that had
left may land at any later time, or never. Only a positive completion, a cut, or a new connection proves
that nothing more will come.
"""

from dataclasses import replace

from kvfence.protocol import events
from kvfence.protocol.words import PageRef, Peer
from kvfence.world.config import Piece
from kvfence.world.mail import Mail
from kvfence.world.memory import Page, Seal, Slot, put
from kvfence.world.oracle import Kind, read_fault
from kvfence.world.records import Link, Write
from kvfence.world.state import WriteKey


class Transfer(Mail):
    """The pages' way from a prefill pool into a decode pool."""

    # ------------------------------------------------------------ landing
    def _land(self, key: WriteKey) -> None:
        write = self.writes[key]
        slots = self._source_slots(key, write)
        trailer = write.trailers[write.at]
        if write.part == 0:
            self._judge_source(key, write.request, slots, trailer)
        target = self.adopted.get(write.decode, write.decode)
        self._judge_target(key, write, target)
        parts = self._parts(len(slots))
        pool = self.pools.get(target)
        if pool is not None:
            page = write.targets[write.at].page
            pool[page] = self._landed(pool[page], slots, write, key, is_last=write.part + 1 == parts)
        is_page_done = write.part + 1 == parts
        at, part = (write.at + 1, 0) if is_page_done else (write.at, write.part + 1)
        changed = replace(write, at=at, part=part)
        if changed.is_orphan and changed.has_landed:
            del self.writes[key]
        else:
            self.writes[key] = changed

    def _parts(self, slots: int) -> int:
        """How many pieces a page lands in."""
        return {Piece.PAGE: 1, Piece.HALF: 2, Piece.SLOT: slots + 1}[self.config.piece]

    def _landed(
        self, page: Page, slots: tuple[Slot | None, ...], write: Write, key: WriteKey, *, is_last: bool
    ) -> Page:
        """The target page after the next piece; the trailer always comes last."""
        lease = key[1]
        came = tuple(None if slot is None else Slot(slot.request, slot.position, lease) for slot in slots)
        trailer = write.trailers[write.at]
        if self.config.piece is Piece.PAGE:
            return Page(trailer, came)
        if is_last:
            return Page(trailer, page.slots)
        if self.config.piece is Piece.HALF:
            return Page(page.seal, came)
        return Page(page.seal, put(page.slots, write.part, came[write.part]))

    def _source_slots(self, key: WriteKey, write: Write) -> tuple[Slot | None, ...]:
        if write.buffered is not None:
            return write.buffered[write.at]
        return self.pools[key[0]][write.sources[write.at].page].slots

    def _judge_source(
        self, key: WriteKey, request: int, slots: tuple[Slot | None, ...], trailer: Seal
    ) -> None:
        """Law 1 and 2 for what leaves: the lease's own content, and nothing behind it."""
        writer, lease, _ = key
        first = trailer.ordinal * self.config.page_tokens
        for index, slot in enumerate(slots):
            position = first + index
            if index >= trailer.valid:
                if slot is not None:
                    self.find(Kind.DIRTY_PAGE, writer, f"{lease} sends {slot} in unused slot {index}")
            elif read_fault(slot, self.asks, request, position, None) is not None:
                what = f"{lease} of request {request} sends {slot} for position {position}"
                self.find(Kind.FOREIGN_SOURCE, writer, what)

    def _judge_target(self, key: WriteKey, write: Write, target: Peer) -> None:
        core = self.decode_core(target)
        ref: PageRef = write.targets[write.at]
        if core is None:
            return
        owns = target == write.decode and core.ledger.owns(key[1].sequence, ref)
        if not owns:
            self.find(Kind.LATE_WRITE, target, f"a write of {key[1]} lands in {ref}, which it has no longer")

    # ------------------------------------------------------------ ends of a write
    def _complete(self, key: WriteKey) -> None:
        del self.writes[key]
        self.tell(key[0], events.WriteCompleted(key[1], key[2]))

    def _stop(self, key: WriteKey) -> None:
        del self.writes[key]
        self.tell(key[0], events.WriteFailed(key[1], key[2], quiet=True))

    def _fail_write(self, key: WriteKey, *, quiet: bool) -> None:
        if quiet:
            del self.writes[key]
        else:
            self.writes[key] = replace(self.writes[key], is_orphan=True)
        self.tell(key[0], events.WriteFailed(key[1], key[2], quiet=quiet))

    def _orphan(self, key: WriteKey) -> None:
        """Nobody waits for it any more, and the writer's memory is not read again: what left, left."""
        write = self.writes[key]
        if write.has_landed:
            del self.writes[key]
            return
        pool = self.pools[key[0]]
        buffered = write.buffered or tuple(pool[ref.page].slots for ref in write.sources)
        self.writes[key] = replace(write, is_orphan=True, buffered=buffered)

    # ------------------------------------------------------------ connections
    def _between(self, writer: Peer, decode: Peer) -> list[WriteKey]:
        return [key for key, write in self.writes.items() if key[0] == writer and write.decode == decode]

    def _destroyed(self, writer: Peer, decode: Peer) -> None:
        self.links[writer, decode] = Link.GONE
        for key in self._between(writer, decode):
            self._orphan(key)
        self.tell(writer, events.ConnectionDestroyed(decode))

    def _reconnect(self, writer: Peer, decode: Peer) -> None:
        for key in self._between(writer, decode):
            del self.writes[key]
        self.links[writer, decode] = Link.UP
        self.tell(writer, events.Reconnected(decode))

    def _cut(self, decode: Peer, writer: Peer) -> None:
        """Revoke: nothing of that incarnation lands here again. A stopped process is killed for it."""
        del self.cuts[decode, writer]
        if writer in self.paused:
            self._crash(writer)
        keys = self._between(writer, decode)
        lost = [key for key in keys if not self.writes[key].is_orphan]
        for key in keys:
            del self.writes[key]
        if self.links.get((writer, decode)) is Link.UP:  # one that the writer is tearing down ends by itself
            self.links[writer, decode] = Link.GONE
        for key in lost:
            self.tell(key[0], events.WriteFailed(key[1], key[2], quiet=False))
        self.tell(decode, events.Cut(writer))

    def _fail_cut(self, decode: Peer, writer: Peer) -> None:
        del self.cuts[decode, writer]
        self.tell(decode, events.CutUnknown(writer))

    def _crash(self, peer: Peer) -> None:
        """Let a process die (`weather.py` says what that takes with it)."""
        raise NotImplementedError
