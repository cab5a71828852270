"""How the nodes of a world are named, and their cores made."""

from kvfence.kv.prefix import KvIdentity, PrefixIndex
from kvfence.protocol import (
    Decisions,
    DecodeCore,
    NoPrefix,
    PageLedger,
    PrefillCore,
    PrefixSource,
    RouterCore,
)
from kvfence.protocol.words import Peer, Role
from kvfence.world.config import WorldConfig
from kvfence.world.state import Core


def node_name(role: Role, index: int) -> str:
    """The name of a node: its role and a number."""
    return f"{role.value}{index}"


def role_of(peer: Peer) -> Role:
    """The role of a node, by its name."""
    return Role(peer.node.rstrip("0123456789"))


def make_core(peer: Peer, role: Role, config: WorldConfig, decisions: Decisions) -> Core:
    """A fresh core of a role, with a fresh ledger."""
    if role is Role.ROUTER:
        return RouterCore(peer, config.router, decisions)
    if role is Role.DECODE:
        ledger = PageLedger(config.decode_pages, spare_pages=config.decode_spare_pages)
        return DecodeCore(peer, config.decode, decisions, ledger)
    ledger = PageLedger(config.prefill_pages)
    return PrefillCore(peer, config.prefill, decisions, ledger, make_prefix(config, ledger, decisions))


def make_prefix(config: WorldConfig, ledger: PageLedger, decisions: Decisions) -> PrefixSource:
    """The prefix index of a prefill node, the very one that serves."""
    if not config.has_prefix_cache:
        return NoPrefix()
    identity = KvIdentity("world", "1", "provenance", config.page_tokens)
    return PrefixIndex.ruled_by(decisions, identity, ledger)
