"""Reachability: rare situations by name, counted, so that weather that no longer reaches one is noticed.

Rules: a probe that never fires in a nightly run fails it. Most are rows of the protocol's tables, seen by the
stepper in the trail of each step; the others are seen in a happening just before it is performed.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType

from kvfence.protocol import (
    DecodeCore,
    DecodeFact,
    DecodeState,
    PageState,
    PrefillFact,
    PrefillState,
    RouterFact,
    RouterState,
)
from kvfence.protocol.commands import SendReserveRefused, SetTimer, StartPrefill
from kvfence.protocol.events import Abort, Close, Hello, LowestLive
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import LeaseId, Peer, RefusalCode
from kvfence.world import Core, InPlace, World, role_of
from kvfence.world import happenings as h

Row = tuple[Enum, Enum]

_D, _DF = DecodeState, DecodeFact
_P, _PF = PrefillState, PrefillFact
_R, _RF = RouterState, RouterFact

ROWS: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {
        # ------------------------------------------------ decode
        "reservation aborted before it came": ((_D.ABSENT, _DF.ABORT),),
        "lease aborted before its writer closed": ((_D.RESERVED, _DF.ABORT),),
        "lease aborted while its seals are verified": ((_D.VERIFYING, _DF.ABORT),),
        "row aborted while it waits for a page": ((_D.WAITING, _DF.ABORT),),
        "reservation came twice": ((_D.RESERVED, _DF.RESERVE_AGAIN),),
        "lease deadline passed": ((_D.RESERVED, _DF.LEASE_DEADLINE),),
        "close asked again": ((_D.CLOSING, _DF.CLOSE_DEADLINE),),
        "closed after the end": ((_D.CLOSING, _DF.CLOSED_LATE),),
        "closed repeated to a running row": ((_D.RUNNING, _DF.CLOSED_AGAIN),),
        "closed for a lease that is gone": ((_D.ABSENT, _DF.CLOSED_STRAY),),
        "writer lost before it closed": ((_D.RESERVED, _DF.WRITER_LOST),),
        "writer lost while its row runs": ((_D.RUNNING, _DF.WRITER_LOST),),
        "writer cut under quarantined pages": ((_D.CLOSING, _DF.WRITER_CUT),),
        "router lost while its row runs": ((_D.RUNNING, _DF.ROUTER_LOST),),
        "row preempted while running": ((_D.RUNNING, _DF.PREEMPTED),),
        "row preempted while waiting": ((_D.WAITING, _DF.PREEMPTED),),
        "lease preempted before its writer closed": ((_D.RESERVED, _DF.PREEMPTED),),
        "waiting row got its page": ((_D.WAITING, _DF.PAGE_CAME),),
        "waiting row starved": ((_D.WAITING, _DF.GROWTH_DEADLINE),),
        "seals looked at after the end": ((_D.CLOSING, _DF.SEALS_GOOD),),
        "step retired after the end": ((_D.CLOSING, _DF.RETIRED),),
        # ------------------------------------------------ prefill
        "prefill came after the close": ((_P.ABSENT, _PF.PREFILL_LATE),),
        "close came before the prefill": ((_P.ABSENT, _PF.CLOSE),),
        "close of a lease that is computed": ((_P.COMPUTING, _PF.CLOSE),),
        "batch past its posting bound": (
            (_P.COMPUTING, _PF.BATCH_DEADLINE),
            (_P.SENDING, _PF.BATCH_DEADLINE),
        ),
        "write given up": ((_P.COMPUTING, _PF.WRITE_FAILED), (_P.SENDING, _PF.WRITE_FAILED)),
        "write given up after the end": ((_P.CLOSING, _PF.WRITE_FAILED),),
        "lease failed with another on its connection": (
            (_P.COMPUTING, _PF.CONNECTION_FAILED),
            (_P.SENDING, _PF.CONNECTION_FAILED),
        ),
        "silence broken by a new connection": ((_P.ABSENT, _PF.RECONNECTED),),
        "decode lost under a lease": ((_P.COMPUTING, _PF.DECODE_LOST), (_P.SENDING, _PF.DECODE_LOST)),
        # ------------------------------------------------ router
        "request preempted while streaming": ((_R.STREAMING, _RF.PREEMPTED),),
        "request bounced by a full node": ((_R.RESERVING, _RF.RESERVE_BUSY), (_R.PREFILLING, _RF.ENDED_BUSY)),
        "request retried after a node was lost": (
            (_R.RESERVING, _RF.NODE_LOST_RETRY),
            (_R.PREFILLING, _RF.NODE_LOST_RETRY),
            (_R.PREFILLING, _RF.ENDED_RETRY),
        ),
        "token of an attempt that is over": ((_R.CLOSING, _RF.STRAY_WORK), (_R.QUEUED, _RF.STRAY_WORK)),
        "waited in the queue for too long": ((_R.QUEUED, _RF.QUEUE_DEADLINE),),
        "answer took longer than a request may": ((_R.STREAMING, _RF.REQUEST_DEADLINE),),
    }
)

SIGHTS = (
    "lease aborted while its second batch is in flight",
    "late write lands in a quarantined page",
    "orphan lands after its sender died",
    "process died in the middle of a page",
    "stopped process goes on with its writes",
    "lease freed with a write of another on the way",
    "prompt begins with a cached prefix",
    "reservation refused for quarantine",
    "request exactly at the limit",
    "request one above the limit",
    "step retires under a lease that has ended",
    "node died with a forward pass under way",
    "timer of an older setting rings",
    "lost writer says hello",
    "fresh request served when all is home",
)
PROBES = (*ROWS, *SIGHTS)
# Only a wrong decision leads there: a run without faults that sees one of these has found something.
POISON = ("page set apart as poisoned", "poisoned page freed after the cut")


class Watcher(InPlace):
    """The stepper of a simulation, which counts the rows that are taken."""

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        self.seen: dict[str, int] = {}
        self.timers_set: list[tuple[Peer, SetTimer]] = []  # for whoever keeps time, who empties it

    def step(self, core: Core, event: Event) -> tuple[Core, list[Command]]:
        """Step the core in place; count its trail."""
        poisoned = len(core.poisoned) if isinstance(core, DecodeCore) else 0
        said = core.step(event)
        if isinstance(core, DecodeCore) and len(core.poisoned) != poisoned:
            self.see(POISON[0] if len(core.poisoned) > poisoned else POISON[1])
        rows = self.rows
        for taken in core.trail:
            row = (taken.state, taken.fact)
            rows[row] = rows.get(row, 0) + 1
        for command in said:
            if isinstance(command, SetTimer):
                self.timers_set.append((core.me, command))
            elif isinstance(command, StartPrefill) and command.cached_tokens:
                self.see("prompt begins with a cached prefix")
            elif isinstance(command, SendReserveRefused) and command.refusal.code is RefusalCode.QUARANTINE:
                self.see("reservation refused for quarantine")
        return core, said

    def see(self, name: str) -> None:
        """Count a sight."""
        self.seen[name] = self.seen.get(name, 0) + 1

    def counts(self) -> dict[str, int]:
        """How often each probe fired."""
        found = {name: sum(self.rows.get(row, 0) for row in rows) for name, rows in ROWS.items()}
        return found | {name: self.seen.get(name, 0) for name in (*SIGHTS, *POISON)}


def sights(world: World, happening: h.Happening) -> Iterator[str]:
    """What is seen in a happening before it is performed."""
    match happening:
        case h.Land():
            yield from _in_landing(world, happening)
        case h.Deliver():
            yield from _in_message(world, happening)
        case h.Crash():
            if any(key[0] == happening.peer and write.part for key, write in world.writes.items()):
                yield "process died in the middle of a page"
            if happening.peer in world.passes:
                yield "node died with a forward pass under way"
        case h.Resume():
            if any(key[0] == happening.peer and not w.is_orphan for key, w in world.writes.items()):
                yield "stopped process goes on with its writes"
        case h.Retire():
            if _is_over(world, happening):
                yield "step retires under a lease that has ended"
        case h.Submit():
            yield from _in_size(world, happening)
        case h.RingLate():
            yield "timer of an older setting rings"


def _in_landing(world: World, happening: h.Land) -> Iterator[str]:
    write = world.writes[happening.writer, happening.lease, happening.batch]
    if happening.writer not in world.cores:
        yield "orphan lands after its sender died"
    core = world.decode_core(write.decode)
    if core is not None and core.ledger.state[write.targets[write.at].page] == PageState.CLOSING:
        yield "late write lands in a quarantined page"


def _in_message(world: World, happening: h.Deliver) -> Iterator[str]:
    message = world.wires[happening.sender, happening.receiver][0]
    decode = world.decode_core(happening.receiver)
    if decode is not None and isinstance(message, Hello) and _is_lost(decode, happening.sender):
        yield "lost writer says hello"
    core = world.prefill_core(happening.receiver)
    if core is None:
        return
    lease: LeaseId | None = None
    if isinstance(message, Abort):
        lease = core.attempts.get(message.attempt)
    elif isinstance(message, Close):
        lease = message.lease
    record = None if lease is None else core.leases.get(lease)
    if record is not None and record.in_flight and max(record.in_flight) >= 2:
        yield "lease aborted while its second batch is in flight"
    if isinstance(message, LowestLive) and any(key[0] == happening.receiver for key in world.writes):
        yield "lease freed with a write of another on the way"


def _is_lost(core: DecodeCore, sender: Peer) -> bool:
    return core.peers.newest(sender.node) == sender and not core.peers.is_alive(sender, role_of(sender))


def _is_over(world: World, happening: h.Retire) -> bool:
    core = world.cores[happening.node]
    leases = getattr(core, "leases", {})
    records = [leases.get(chunk.lease) for chunk in world.passes[happening.node]]
    return any(record is None or record.state.name == "CLOSING" for record in records)


def _in_size(world: World, happening: h.Submit) -> Iterator[str]:
    limit = world.routers()[happening.router].limit_tokens
    ask = world.asks[happening.request]
    needed = len(ask.prompt) + ask.max_tokens
    if limit is not None and needed == limit:
        yield "request exactly at the limit"
    if limit is not None and needed == limit + 1:
        yield "request one above the limit"
