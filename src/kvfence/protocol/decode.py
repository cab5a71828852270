"""The decode's state machine."""

from kvfence.protocol.commands import Command
from kvfence.protocol.config import DecodeConfig
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.events import Event
from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.words import Peer


class DecodeCore:
    """Signature only, for now."""

    def __init__(self, me: Peer, config: DecodeConfig, decisions: Decisions, ledger: PageLedger) -> None:
        raise NotImplementedError

    def step(self, event: Event) -> list[Command]:
        """Take one fact, give the commands that follow from it."""
        raise NotImplementedError
