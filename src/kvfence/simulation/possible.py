"""Whether a happening can happen in a world as it stands: for weather, and for replays that skip."""

from kvfence.protocol import DecodeState
from kvfence.protocol.words import LeaseId, Peer
from kvfence.world import Link, World, Write
from kvfence.world import happenings as h


def is_possible(world: World, happening: h.Happening) -> bool:
    """Tell whether performing it makes sense now."""
    match happening:
        case h.Deliver() | h.Repeat():
            return tuple(happening) in world.wires and world.is_active(happening.receiver)
        case h.Drop():
            return tuple(happening) in world.wires
        case h.Land() | h.Complete() | h.Stop() | h.FailWrite() | h.Vanish():
            return _is_write_possible(world, happening)
        case h.Verify():
            return tuple(happening) in world.verifies and happening.decode not in world.paused
        case h.Launch():
            return happening in world.enabled()
        case h.Retire():
            return happening.node in world.passes and happening.node not in world.paused
        case h.Fire():
            is_set = tuple(happening) in world.timers and world.is_active(happening.node)
            return is_set and world.timer_is_live(*happening)
        case h.CutDone() | h.CutFails():
            return tuple(happening) in world.cuts and happening.decode not in world.paused
        case h.Destroyed():
            return world.links.get((happening.writer, happening.decode)) is Link.FALLING and (
                happening.writer not in world.paused
            )
        case _:
            return _is_weather_possible(world, happening)


def _write_of(world: World, writer: Peer, lease: LeaseId, batch: int) -> Write | None:
    return world.writes.get((writer, lease, batch))


def _is_write_possible(
    world: World, happening: h.Land | h.Complete | h.Stop | h.FailWrite | h.Vanish
) -> bool:
    write = _write_of(world, happening.writer, happening.lease, happening.batch)
    if write is None or happening.writer in world.paused:
        return False
    match happening:
        case h.Land():
            return not write.has_landed and (write.is_orphan or not write.halts)
        case h.Complete():
            return write.has_landed and not write.is_orphan
        case h.Stop():
            return write.halts and not write.is_orphan
        case h.Vanish():
            return write.is_orphan
    return not write.is_orphan


def _is_weather_possible(world: World, happening: h.Happening) -> bool:
    match happening:
        case h.Submit():
            return world.is_active(happening.router) and happening.request not in world.clients
        case h.Leave():
            client = world.clients.get(happening.request)
            is_waiting = client is not None and client.end is None and not client.is_lost
            return is_waiting and world.is_active(world.homes[happening.request])
        case h.Reconnect():
            is_gone = world.links.get((happening.writer, happening.decode)) is Link.GONE
            return is_gone and world.is_active(happening.writer) and world.is_active(happening.decode)
        case h.Announce():
            return world.is_active(happening.sender) and happening.receiver in world.cores
        case h.Suspect():
            return world.is_active(happening.observer)
        case h.Crash():
            return happening.peer in world.cores
        case h.Restart():
            return happening.peer in world.dead
        case h.Stray():
            core = world.decode_core(happening.decode)
            record = None if core is None else core.leases.get(happening.lease)
            is_idle = record is not None and record.state in (DecodeState.RESERVED, DecodeState.VERIFYING)
            return is_idle and world.is_active(happening.decode)
        case h.Pause():
            return world.is_active(happening.peer)
        case h.Resume():
            return happening.peer in world.paused
        case h.RingLate():
            return world.is_active(happening.node) and world.old_generation(*happening) is not None
    return False
