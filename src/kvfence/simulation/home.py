"""What has not come home (law 11) when everything that could happen has happened, in words."""

from collections.abc import Iterator

from kvfence.protocol import DecodeCore, PageState, PrefillCore, RouterCore
from kvfence.protocol.words import LeaseId, Peer, TimerKind
from kvfence.world import World
from kvfence.world import happenings as h


def not_home(world: World) -> Iterator[str]:
    """Say which requests never ended, which records and pages are left; an uncut writer's are shown."""
    for request, client in world.clients.items():
        if client.end is None and not client.is_lost:
            yield f"request {request} never ends"
    for peer, core in world.cores.items():
        match core:
            case RouterCore():
                yield from (f"{peer.node} keeps request {request}" for request in core.requests)
            case DecodeCore():
                yield from _in_decode(peer, core)
            case PrefillCore():
                yield from _in_prefill(peer, core)


def asks_in_vain(world: World, happening: h.Fire) -> bool:
    """Whether decode asks, for ever, a writer to close whose cut cannot be proven: its pages are shown."""
    core, lease = world.decode_core(happening.node), happening.timer.key
    if core is None or happening.timer.kind is not TimerKind.CLOSE_RETRY or not isinstance(lease, LeaseId):
        return False
    record = core.leases.get(lease)
    is_patient = record is None or record.closes_asked <= core.config.close_retries_max
    return not is_patient and record is not None and record.writer in core.uncut


def _in_decode(peer: Peer, core: DecodeCore) -> Iterator[str]:
    shown = set(core.uncut)
    for lease, record in core.leases.items():
        if record.writer not in shown or record.steps:
            yield f"{peer.node} keeps {lease} of {record.writer}, {record.state.value}"
    for page, poison in core.poisoned.items():
        if not poison.writers:
            yield f"{peer.node} keeps page {page} as poisoned, though every writer was cut"


def _in_prefill(peer: Peer, core: PrefillCore) -> Iterator[str]:
    yield from (f"{peer.node} keeps {lease}, {record.state.value}" for lease, record in core.leases.items())
    ledger = core.ledger
    home = ledger.count(PageState.FREE) + ledger.count(PageState.CACHED)
    if home != ledger.total and not core.leases:
        yield f"{peer.node} has {ledger.total - home} pages that nobody holds"
