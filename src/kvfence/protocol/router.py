"""The router's state machine."""

from kvfence.protocol.commands import Command
from kvfence.protocol.config import RouterConfig
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.events import Event
from kvfence.protocol.words import Peer


class RouterCore:
    """Signature only, for now."""

    def __init__(self, me: Peer, config: RouterConfig, decisions: Decisions) -> None:
        raise NotImplementedError

    def step(self, event: Event) -> list[Command]:
        """Take one fact, give the commands that follow from it."""
        raise NotImplementedError
