"""What happened in a world, told in words: one `Moment` a happening, with what followed from it.

`perform_and_tell` performs, and says who spoke to whom, what was put on the wires, and what was found. It
costs more than the happening itself: drivers use it for runs that are shown, not for those that are counted.
"""

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer
from kvfence.world import happenings as h
from kvfence.world.world import World

CLIENTS = "clients"  # the lane of those outside


@dataclass(frozen=True, slots=True)
class Moment:
    """One happening, from lane to lane (the same one for what is inward); `when` is its driver's time."""

    when: str
    source: str
    target: str
    what: str
    said: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    is_weather: bool = False


def perform_and_tell(world: World, happening: h.Happening, when: str) -> Moment:
    """Let it happen, and tell it."""
    source, target = _lanes(world, happening)
    what = _words_of(world, happening)
    wires, writes, known = dict(world.wires), set(world.writes), len(world.findings)
    ended = {request: client.end for request, client in world.clients.items()}
    world.perform(happening)
    said = [
        f"{receiver.node} ← {show(message)}"
        for (sender, receiver), wire in world.wires.items()
        for message in wire[_kept(wires.get((sender, receiver), ()), wire) :]
    ]
    said += [f"posts batch {key[2]} of lease {show(key[1])}" for key in world.writes if key not in writes]
    for request, client in world.clients.items():
        if client.end is not None and ended.get(request) is None:
            said.append(f"request {request} ends: {show(client.end)}")
    found = tuple(f"{kind.value}, {peer.node}: {text}" for kind, peer, text in world.findings[known:])
    return Moment(when, source, target, what, tuple(said), found, isinstance(happening, h.Weather))


def _kept(before: tuple[Event, ...], now: tuple[Event, ...]) -> int:
    """How many messages at the head of a wire were there before."""
    for dropped in range(len(before) + 1):
        rest = before[dropped:]
        if now[: len(rest)] == rest:
            return len(rest)
    return 0


def _lanes(world: World, happening: h.Happening) -> tuple[str, str]:
    match happening:
        case h.Deliver() | h.Drop() | h.Repeat() | h.Announce():
            return happening.sender.node, happening.receiver.node
        case h.Land():
            write = world.writes[happening.writer, happening.lease, happening.batch]
            return happening.writer.node, write.decode.node
        case h.Submit():
            return CLIENTS, happening.router.node
        case h.Leave():
            return CLIENTS, world.homes[happening.request].node
        case h.CutDone() | h.CutFails():
            return happening.decode.node, happening.writer.node
        case h.Destroyed() | h.Reconnect():
            return happening.writer.node, happening.decode.node
        case h.Suspect():
            return happening.observer.node, happening.peer.node
        case _:
            node = next(part for part in happening if isinstance(part, Peer)).node
            return node, node


def _words_of(world: World, happening: h.Happening) -> str:
    match happening:
        case h.Deliver():
            return show(world.wires[happening.sender, happening.receiver][0])
        case h.Drop():
            return f"lost: {show(world.wires[happening.sender, happening.receiver][0])}"
        case h.Repeat():
            return f"{show(world.wires[happening.sender, happening.receiver][0])}, to come again"
        case h.Land():
            return _landing(world, happening)
        case h.Submit():
            ask = world.asks[happening.request]
            return f"request {ask.request} of {ask.tenant}: {len(ask.prompt)} + {ask.max_tokens} tokens"
        case h.Leave():
            return f"the client of request {happening.request} leaves"
        case h.Fire():
            return f"{happening.timer.kind.value} timer of {_short(happening.timer.key)}"
        case h.RingLate():
            return f"an old {happening.timer.kind.value} timer of {_short(happening.timer.key)}"
        case _:
            rest = [_short(part) for part in happening if not isinstance(part, Peer)]
            return " ".join([type(happening).__name__, *rest])


def _landing(world: World, happening: h.Land) -> str:
    write = world.writes[happening.writer, happening.lease, happening.batch]
    ref = write.targets[write.at]
    what = f"lease {show(happening.lease)}, batch {happening.batch} lands in {show(ref)}, piece {write.part}"
    return f"{what}, an orphan" if write.is_orphan else what


# ---------------------------------------------------------------- values in few words
def show(value: object) -> str:
    """Any word, event or command of the protocol, short."""
    match value:
        case Peer():
            return value.node if value.incarnation == 1 else f"{value.node}/{value.incarnation}"
        case LeaseId():
            return f"{value.incarnation}.{value.sequence}"
        case AttemptId():
            return f"r{value.request}#{value.number}"
        case PageRef():
            return f"p{value.page}@{value.epoch}"
        case Enum():
            return str(value.value)
    if is_dataclass(value):
        shown = (_field(field.name, getattr(value, field.name)) for field in fields(value))
        return " ".join([type(value).__name__, *[word for word in shown if word]])
    return str(value)


def _field(name: str, value: object) -> str:
    if value is None or name in ("sender", "role", "token_hash", "domain") or isinstance(value, bytes | str):
        return ""
    if isinstance(value, tuple):
        is_pages = bool(value) and isinstance(value[0], PageRef)
        return " ".join(map(show, value)) if is_pages else f"{name}:{len(value)}"
    if isinstance(value, LeaseId | AttemptId | PageRef):
        return show(value)
    if isinstance(value, int):
        return f"{name}={value}"
    return f"({show(value)})" if is_dataclass(value) and not isinstance(value, Peer) else show(value)


def _short(value: object) -> str:
    return "·".join(map(show, value)) if isinstance(value, tuple) else show(value)
