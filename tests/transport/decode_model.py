"""A decode node without an engine: the real core and ledger over a rig's receiver, with one lease."""

from tests.transport.rig import TARGET_PAGES, WRITER, Rig

from kvfence.protocol import commands, events
from kvfence.protocol.config import DecodeConfig
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.decode import DecodeCore
from kvfence.protocol.ledger import PageLedger, PageState
from kvfence.protocol.words import AttemptId, Peer, Role
from kvfence.transport import CutResult

ROUTER = Peer("router", 9)
ATTEMPT = AttemptId(ROUTER.incarnation, 1, 1)


class LeaseUnderTest:
    """Two pages leased to WRITER. It does what the decode node does with aborts and cuts, and no more."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.ledger = PageLedger(TARGET_PAGES)
        config = DecodeConfig()
        self.core = DecodeCore(rig.me, config, Decisions(), self.ledger)
        self.core.step(events.Hello(ROUTER, Role.ROUTER))
        self.core.step(events.Hello(WRITER, Role.PREFILL, pool_tokens=512))
        said = self.core.step(
            events.Reserve(
                ROUTER,
                ATTEMPT,
                writer=WRITER,
                tokens=2 * config.page_tokens,
                max_tokens=1,
                token_hash=bytes(32),
            )
        )
        (reserved,) = (command for command in said if isinstance(command, commands.SendReserved))
        self.pages = [ref.page for ref in reserved.pages]
        assert len(self.pages) == 2

    def abort(self) -> None:
        """The client has gone."""
        self.core.step(events.Abort(ROUTER, ATTEMPT))

    def ask_cut(self, peer: Peer = WRITER) -> CutResult:
        """Ask the receiver, and tell the core what it said."""
        result: CutResult = self.rig.receiver.cut(peer)
        if result is CutResult.PROVEN:
            self.core.step(events.Cut(peer))
        elif result is CutResult.UNKNOWN:
            self.core.step(events.CutUnknown(peer))
        return result

    def states(self) -> set[PageState]:
        """Where the two pages are."""
        return {PageState(self.ledger.state[page]) for page in self.pages}
