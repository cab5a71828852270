"""The prefill's state machine."""

from kvfence.protocol.commands import Command
from kvfence.protocol.config import PrefillConfig
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.events import Event
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.prefix_source import PrefixSource
from kvfence.protocol.words import Peer


class PrefillCore:
    """Signature only, for now."""

    def __init__(
        self, me: Peer, config: PrefillConfig, decisions: Decisions, ledger: PageLedger, prefix: PrefixSource
    ) -> None:
        raise NotImplementedError

    def step(self, event: Event) -> list[Command]:
        """Take one fact, give the commands that follow from it."""
        raise NotImplementedError
