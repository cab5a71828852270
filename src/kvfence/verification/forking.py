"""A second core that stands where the first one stands, its prefix index included."""

# ruff: noqa: SLF001 -- a copy has all that there is, what is private included.

from collections import OrderedDict
from copy import copy

from kvfence.kv.prefix import PrefixIndex, _Node
from kvfence.protocol import DecodeCore, PageLedger, RouterCore
from kvfence.protocol.fork import fork_decode, fork_prefill, fork_router
from kvfence.world import Core


def fork_core(core: Core) -> Core:
    """Copy a core to the depth at which it changes itself."""
    if isinstance(core, RouterCore):
        return fork_router(core)
    if isinstance(core, DecodeCore):
        return fork_decode(core)
    ledger = core.ledger.fork()
    prefix = core.prefix
    if isinstance(prefix, PrefixIndex):
        prefix = fork_prefix(prefix, ledger)
    return fork_prefill(core, prefix, ledger)


def fork_prefix(index: PrefixIndex, ledger: PageLedger) -> PrefixIndex:
    """Copy an index, over a copy of its ledger."""
    twin = copy(index)
    twin._table = ledger
    copies: dict[bytes, _Node] = {}
    for key, node in index._nodes.items():
        copies[key] = copy(node)
        copies[key].children = {}
    for key, node in index._nodes.items():
        parent = None if node.parent is None else copies.get(node.parent.key)
        copies[key].parent = parent
        for child in node.children:
            copies[key].children[child] = copies[child]
    twin._nodes = OrderedDict(copies)
    twin._by_page = {page: copies[node.key] for page, node in index._by_page.items()}
    twin._orphans = dict(index._orphans)
    return twin
