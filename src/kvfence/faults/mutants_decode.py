"""The decode node's decisions, got wrong: what it takes for proof, what it names, what it hands to a step.

Each class is one fault of the catalogue and overrides the decisions that its entry names. It holds no
state and inherits from `Decisions` alone, so that any set of them can be mixed into one class.
"""

from collections.abc import Collection

from kvfence.protocol import Decisions
from kvfence.protocol.words import Peer


class FreeOnDeadline(Decisions):
    """What should have ended by now is taken for ended."""

    def deadline_is_quiet(self) -> bool:
        """Yes."""
        return True


class FreeOnAbort(Decisions):
    """Who left is taken for done."""

    def abort_is_quiet(self) -> bool:
        """Yes."""
        return True


class FreeOnLoss(Decisions):
    """A writer that is not heard any more is taken for dead, and a dead one for quiet."""

    def lost_is_quiet(self) -> bool:
        """Yes."""
        return True


class FreeOnUnknownCut(Decisions):
    """A cut that could not be proven is taken for proven."""

    def unknown_cut_is_quiet(self) -> bool:
        """Yes."""
        return True


class FreeOnIllegal(Decisions):
    """An event that should not have come ends the lease, and its pages go at once."""

    def illegal_is_quiet(self) -> bool:
        """Yes."""
        return True


class CloseAskedOnce(Decisions):
    """Close is asked once; when it is lost, nobody answers for the pages."""

    def asks_again(self) -> bool:
        """No."""
        return False


class FreeUnderStep(Decisions):
    """Pages are given back while a launched step still reads them."""

    def may_free(self, steps: int, *, writer_is_quiet: bool) -> bool:  # noqa: ARG002
        """The writer alone is asked about."""
        return writer_is_quiet


class IncarnationUnchecked(Decisions):
    """A name is asked, and a name answers: a restarted node vouches for its dead self."""

    def asked_writer(self, writer: Peer, newest: Peer | None) -> Peer:
        """Whoever bears the name now."""
        return writer if newest is None else newest

    def speaks_for(self, sender: Peer, expected: Peer) -> bool:
        """The name is enough."""
        return sender.node == expected.node


class PoolAdopted(Decisions):
    """A decode node that comes back keeps the memory of its predecessor, and whoever writes to it."""

    def adopts_old_pool(self) -> bool:
        """Yes."""
        return True


class LeaseNumberReused(Decisions):
    """A lease gets the lowest number that no live lease has."""

    def lease_number(self, next_sequence: int, live: Collection[int]) -> int:  # noqa: ARG002
        """The first gap."""
        taken = frozenset(live)
        return next(number for number in range(1, len(taken) + 2) if number not in taken)


class DirtyAddedPage(Decisions):
    """A page that a row grows into keeps what its last owner left."""

    def zeroes_added_pages(self) -> bool:
        """No."""
        return False


class PageZero(Decisions):
    """The padding page is page 0, which is leased like the others."""

    def padding_page(self, reserved: int) -> int:  # noqa: ARG002
        """The first."""
        return 0


class ShiftedTables(Decisions):
    """After a row left the batch, block tables are one row off."""

    def table_row(self, row: int, rows: int) -> int:
        """The next row's."""
        return (row + 1) % rows
