"""Whether the deployment still serves when all is calm: a finding where it could, and does not.

Rules: at the end of a run, when everything has come home, one fresh request is sent to each router, one
after the other; where some pair of nodes has room for it, its client must get a whole answer. Before that, in
calm weather, nobody whose deadline fires may have waited for what was there. What a node is still kept from
by a writer that could not be cut is not held against it.
"""

from collections.abc import Iterator

from kvfence.protocol import DecodeCore, PageState, PrefillCore, Reach, RouterCore
from kvfence.protocol.config import pages_for
from kvfence.protocol.words import EndReason, LeaseId, Peer, Role, TimerKind
from kvfence.simulation.swarm import Swarm
from kvfence.simulation.workload import OWN_TOKENS
from kvfence.world import Ask, Link, World, node_name
from kvfence.world import happenings as h

SERVED = (EndReason.STOP, EndReason.LENGTH)


# ---------------------------------------------------------------- a fresh request
def all_asks(swarm: Swarm) -> dict[int, Ask]:
    """What clients ask in a run, the fresh requests of its end included."""
    asks = {arrival.ask.request: arrival.ask for arrival in swarm.arrivals}
    return asks | {ask.request: ask for ask in fresh_asks(swarm).values()}


def fresh_asks(swarm: Swarm) -> dict[str, Ask]:
    """One request for each router, of the fewest tokens that a request can have."""
    first = 1 + max(arrival.ask.request for arrival in swarm.arrivals)
    return {
        node_name(Role.ROUTER, index): Ask(first + index, "fresh", (OWN_TOKENS + 1_000 * (first + index),), 1)
        for index in range(swarm.world.routers)
    }


def fresh_submit(world: World, swarm: Swarm) -> h.Submit | None:
    """The next fresh request that was not sent yet, and that some pair of nodes can serve now."""
    asks = fresh_asks(swarm)
    for router in world.routers():
        ask = asks[router.node]
        if ask.request not in world.clients and next(ways(world, router, ask), None) is not None:
            return h.Submit(router, ask.request)
    return None


def unserved(world: World, request: int) -> str | None:
    """Say how this fresh request ended, if not with a whole answer."""
    end = world.clients[request].end
    if end is not None and end.reason in SERVED:
        return None
    how = "waits for ever" if end is None else f"is sent away: {end.reason.value}"
    return f"request {request} comes when all is calm and every page is home, and {how}"


def ways(world: World, router: Peer, ask: Ask) -> Iterator[tuple[Peer, Peer]]:
    """Pairs of a prefill and a decode node that have room now; none where not all know one another.

    A router cannot know which of its nodes have lost one another, and may ask such a pair again and again.
    """
    decodes = {peer: core for peer, core in world.cores.items() if isinstance(core, DecodeCore)}
    prefills = {peer: core for peer, core in world.cores.items() if isinstance(core, PrefillCore)}
    pairs = [(prefill, decode) for prefill in prefills for decode in decodes]
    if not all(_know_one_another(world, decodes[decode], prefill) for prefill, decode in pairs):
        return
    for prefill, decode in pairs:
        if _has_room(decodes[decode], router, ask) and _can_compute(prefills[prefill], router, ask):
            yield prefill, decode


def _know_one_another(world: World, core: DecodeCore, prefill: Peer) -> bool:
    are_active = world.is_active(prefill) and world.is_active(core.me)
    is_heard = core.peers.is_alive(prefill, Role.PREFILL) and core.writers.get(prefill) is Reach.WRITING
    return are_active and is_heard and world.links.get((prefill, core.me)) is Link.UP


def _has_room(core: DecodeCore, router: Peer, ask: Ask) -> bool:
    ledger, config = core.ledger, core.config
    pages = pages_for(len(ask.prompt), config.page_tokens) + 1
    return (
        core.peers.is_alive(router, Role.ROUTER)
        and len(ask.prompt) + ask.max_tokens <= core.pool_tokens
        and ledger.free_pages > 0  # what its hello says: a router that was refused waits for that
        and pages <= ledger.count(PageState.FREE)
        and not core.waiting
        and len(core.leases) < config.leases_max
        and core.quarantined_pages * 100 <= ledger.pages * config.quarantine_percent_max
    )


def _can_compute(core: PrefillCore, router: Peer, ask: Ask) -> bool:
    ledger, config = core.ledger, core.config
    free = ledger.count(PageState.FREE) + ledger.count(PageState.CACHED)
    has_room = pages_for(len(ask.prompt), config.page_tokens) <= free and len(core.leases) < config.leases_max
    return has_room and core.peers.is_alive(router, Role.ROUTER)


# ---------------------------------------------------------------- who waits
def waits_in_vain(world: World, fire: h.Fire) -> str | None:
    """Say who has waited until this deadline for something that was there, or None."""
    core, key = world.cores[fire.node], fire.timer.key
    if isinstance(core, DecodeCore) and fire.timer.kind is TimerKind.GROWTH and isinstance(key, LeaseId):
        free = core.ledger.count(PageState.FREE)
        return f"{key} waits for a page, and {free} are free" if free and key in core.waiting else None
    if isinstance(core, RouterCore) and fire.timer.kind is TimerKind.QUEUE and isinstance(key, int):
        return _in_queue(world, core, key)
    return None


def _in_queue(world: World, core: RouterCore, request: int) -> str | None:
    """A router asks who is idle and has not said that it is full: what else is under way may still matter."""
    if core.queue[:1] != [request] or next(world.following(), None) is not None:
        return None
    for prefill, decode in ways(world, core.me, world.asks[request]):
        loads = [core.nodes.get(peer) for peer in (prefill, decode)]
        if all(load and not (load.is_full or load.is_draining or load.pages) for load in loads):
            return f"request {request} waits for room, and {prefill.node} and {decode.node} are idle"
    return None
