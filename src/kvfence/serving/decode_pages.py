"""What a decode node does to the bytes of its pages, by fence level: stamp, verify, adopt, grow, guard.

The core says which pages and when; the level says how much of it is done. With seals off a hand-over is
believed as soon as its manifest was; what decode adds itself is always zeroed first, at every level,
since masked slots are read and must be finite.
"""

from collections.abc import Sequence

from kvfence.kv import (
    FenceLevel,
    GuardFinding,
    HandoverResult,
    PageSweep,
    Pool,
    StepGuard,
    copy_tail,
    lease_key,
    open_page,
    scrub_pages,
    seal_own_page,
    stamp_unwritten,
    verify_handover,
)
from kvfence.protocol import CORRECT, Decisions, PageLedger, commands
from kvfence.protocol.words import LeaseId, PageRef


class DecodePages:
    """The fence's hands on one decode pool. `node_secret` never leaves the process; its lease keys do."""

    def __init__(
        self,
        pool: Pool,
        ledger: PageLedger,
        *,
        level: FenceLevel,
        incarnation: int,
        node_secret: bytes,
        decisions: Decisions = CORRECT,
    ) -> None:
        self._pool, self._level, self._node_secret = pool, level, node_secret
        self.page_tokens = pool.layout.page_tokens
        is_guarded = level.guards_steps and decisions.guards_steps()
        self._guard = StepGuard(pool, ledger, incarnation) if is_guarded else None
        self._zeroes = decisions.zeroes_added_pages()
        self._sweep = PageSweep(pool, ledger, incarnation) if level.sweeps_pages else None

    def key(self, lease: LeaseId) -> bytes:
        """The key under which the writer of this lease tags its seals."""
        return lease_key(self._node_secret, lease)

    def stamp(self, lease: LeaseId, pages: Sequence[PageRef]) -> None:
        """Mark reserved pages as unwritten, before their writer hears of them."""
        if self._level.seals_pages:
            stamp_unwritten(self._pool, lease, pages)

    def verify(self, lease: LeaseId, pages: Sequence[PageRef], tokens: int) -> HandoverResult:
        """Judge a hand-over."""
        if not self._level.seals_pages:
            return HandoverResult(None, (), verified_pages=0)
        return verify_handover(self._pool, lease, self.key(lease), pages, tokens, self.page_tokens)

    def adopt(self, command: commands.StartRow, tokens: int) -> tuple[list[PageRef], bool]:
        """Return the block table, and whether its last page is a copy (never append to a writer's page)."""
        pages = list(command.pages)
        valid = tokens % self.page_tokens
        last = len(pages) - 1
        if valid:
            copy_tail(
                self._pool,
                command.lease,
                source=pages[last],
                target=command.tail,
                ordinal=last,
                valid_tokens=valid,
                zeroes=self._zeroes,
            )
            pages[last] = command.tail
        else:
            open_page(self._pool, command.lease, command.tail, last + 1, zeroes=self._zeroes)
            pages.append(command.tail)
        if self._guard is not None:
            self._guard.add_row(command.lease, pages)
        return pages, bool(valid)

    def grow(self, lease: LeaseId, page: PageRef, ordinal: int) -> None:
        """One more page of the row's own."""
        open_page(self._pool, lease, page, ordinal, zeroes=self._zeroes)
        if self._guard is not None:
            self._guard.grow_row(lease, page)

    def seal_own(self, lease: LeaseId, page: PageRef, ordinal: int) -> None:
        """A page of the row's own is full."""
        if self._level.digests_own_pages:
            seal_own_page(self._pool, lease, self.key(lease), page, ordinal)

    def leave(self, lease: LeaseId) -> None:
        """The row is out of every later step."""
        if self._guard is not None:
            self._guard.remove_row(lease)

    def check_before(self, leases: Sequence[LeaseId]) -> Sequence[GuardFinding]:
        """What the guard finds before a forward pass."""
        return () if self._guard is None else self._guard.check_before(leases)

    def check_after(self, leases: Sequence[LeaseId]) -> Sequence[GuardFinding]:
        """What guard and sweep find before the pass's tokens are released."""
        found: list[GuardFinding] = [] if self._guard is None else self._guard.check_after(leases)
        if self._sweep is not None:
            found += self._sweep.check_some()
        return found

    def freed(self, pages: Sequence[int]) -> None:
        """Pages became free."""
        if self._level.scrubs_pages:
            scrub_pages(self._pool, pages)
