"""Ring 0: the protocol as pure state machines. No I/O, no clock, no randomness, standard library only."""

from kvfence.protocol.config import DecodeConfig, PrefillConfig, RouterConfig, pages_for
from kvfence.protocol.decisions import CORRECT, Decisions, Expectation
from kvfence.protocol.decode import DecodeCore
from kvfence.protocol.decode_records import Reach
from kvfence.protocol.decode_table import DecodeFact, DecodeState
from kvfence.protocol.ledger import Move, PageLedger, PageState
from kvfence.protocol.prefill import PrefillCore
from kvfence.protocol.prefill_table import PrefillFact, PrefillState
from kvfence.protocol.prefix_source import NoPrefix, PrefixSource
from kvfence.protocol.router import RouterCore
from kvfence.protocol.router_table import RouterFact, RouterState
from kvfence.protocol.tables import DECODE, PREFILL, ROUTER, Table, Transition
from kvfence.protocol.tokens import hash_tokens

__all__ = [
    "CORRECT",
    "DECODE",
    "PREFILL",
    "ROUTER",
    "Decisions",
    "DecodeConfig",
    "DecodeCore",
    "DecodeFact",
    "DecodeState",
    "Expectation",
    "Move",
    "NoPrefix",
    "PageLedger",
    "PageState",
    "PrefillConfig",
    "PrefillCore",
    "PrefillFact",
    "PrefillState",
    "PrefixSource",
    "Reach",
    "RouterConfig",
    "RouterCore",
    "RouterFact",
    "RouterState",
    "Table",
    "Transition",
    "hash_tokens",
    "pages_for",
]
