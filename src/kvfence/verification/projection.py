"""What a world looks like to the twin: the same variables, written the same way.

The twin (`twin/Transfer.tla`) knows the ledger of decode, one-sided writes, wires, and what each role holds
of each lease and request. Here a world of the shipped cores is reduced to exactly that. Rules: nothing is
computed that the world does not hold, and nothing depends on how the world was reached; `docs/twin.md` has
the encoding in words. It is meant for worlds of one router, one prefill and one decode node.

It leaves out what the twin leaves out: token ids, seals beyond whose they are, timers, counts, tombstones.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kvfence.protocol import (
    DecodeCore,
    DecodeState,
    PageLedger,
    PageState,
    PrefillCore,
    PrefillState,
    Reach,
    RouterCore,
    RouterState,
    events,
)
from kvfence.protocol.errors import invariant
from kvfence.protocol.words import Done, LeaseId, Outcome, PageRef, Peer, Refused, Role
from kvfence.verification.twin_states import State, Value, mapped, state
from kvfence.world import Page, World

_ROLE_LETTERS: Mapping[Role, str] = {Role.ROUTER: "r", Role.PREFILL: "p", Role.DECODE: "d"}
_REACHES: Mapping[Reach, str] = {
    Reach.WRITING: "writing",
    Reach.CUTTING: "cutting",
    Reach.UNCUT: "uncut",
}
_WIRES = ("rd", "dr", "rp", "dp", "pd")
_NO_WRITER = mapped({"state": "absent", "attempt": (), "targets": (), "open": False, "busy": False})
_NO_LEASE = mapped({"state": "absent", "attempt": (), "pages": (), "tail": 0, "quiet": False, "looks": False})


def project(world: World, leases: int) -> State:
    """Return the twin's state of a world in which at most `leases` leases are granted."""
    router, prefill, decode = _cores(world)
    at_decode = decode.me
    invariant(decode.next_sequence <= leases + 1, f"the twin's scope has room for {leases} leases only")
    ids = [LeaseId(at_decode.incarnation, sequence) for sequence in range(1, leases + 1)]
    return state(
        {
            **_pages(world, decode),
            "flights": _flights(world, decode),
            "wires": _wires(world),
            **_requests(world, router),
            **_writer(prefill, at_decode, ids),
            "reach": _reach(decode),
            "decode": tuple(_granted(decode, lease) for lease in ids),
            "next": decode.next_sequence,
            "rows": tuple(lease.sequence for _, lease in world.rows),
            "step": tuple(taken.lease.sequence for taken in world.passes.get(at_decode, ())),
        }
    )


def _cores(world: World) -> tuple[RouterCore, PrefillCore | None, DecodeCore]:
    """The three cores; no prefill core where it has died."""
    found: dict[type, Any] = {type(core): core for core in world.cores.values()}
    is_one_each = len(found) == len(world.cores) and {RouterCore, DecodeCore} <= found.keys()
    invariant(is_one_each, f"the twin has one node a role, not {sorted(world.cores)}")
    return found[RouterCore], found.get(PrefillCore), found[DecodeCore]


# ------------------------------------------------------------ pages and writes
def _pages(world: World, decode: DecodeCore) -> dict[str, Value]:
    ledger, pool = decode.ledger, world.pools[decode.me]
    pages = range(ledger.total)
    return {
        "ledger": mapped(
            {
                page: mapped(
                    {
                        "state": PageState(ledger.state[page]).name.lower(),
                        "owner": ledger.owner[page],
                    }
                )
                for page in pages
            }
        ),
        "content": mapped({page: _author(pool[page]) for page in pages}),
        "free": _free_order(ledger),
    }


def _free_order(ledger: PageLedger) -> Value:
    """FREE pages in the order in which they would be leased: a copy of the ledger is asked for all."""
    n = ledger.count(PageState.FREE)
    leased = ledger.fork().lease(n, 1) if n else ()
    return tuple(ref.page for ref in leased or ())


def _author(page: Page) -> int:
    """Whose bytes lie in the page; 0 under a stamp that nothing was written over."""
    seal = page.seal
    if seal is None or not isinstance(seal.lease, LeaseId):
        return 0
    wrote_itself = any(slot is not None and slot.lease == seal.lease for slot in page.slots)
    return seal.lease.sequence if seal.digest is not None or wrote_itself else 0


def _flights(world: World, decode: DecodeCore) -> Value:
    """Pages that were posted and have not landed: (lease, ordinal from 1, page)."""
    return frozenset(
        (lease.sequence, trailer.ordinal + 1, _named(decode, lease, target))
        for (_, lease, _), write in world.writes.items()
        for trailer, target in list(zip(write.trailers, write.targets, strict=True))[write.at :]
    )


def _named(decode: DecodeCore, lease: LeaseId, ref: PageRef) -> int:
    """Name a page that the lease has or had: its epoch is current exactly while the lease owns the page."""
    owns = decode.ledger.owner[ref.page] == lease.sequence
    is_current = decode.ledger.epoch[ref.page] == ref.epoch and decode.ledger.owner[ref.page] != 0
    invariant(owns == is_current, f"{lease} names {ref}, and the ledger has another epoch or owner for it")
    return ref.page


# ------------------------------------------------------------ roles
def _requests(world: World, router: RouterCore) -> dict[str, Value]:
    nodes = router.nodes.values()
    return {
        "router": tuple(_request(world, router, request) for request in sorted(world.asks)),
        "queue": tuple(router.queue),
        "full": frozenset(_ROLE_LETTERS[node.role] for node in nodes if node.is_full),
        "known": any(node.role is Role.PREFILL for node in nodes),
    }


def _request(world: World, router: RouterCore, request: int) -> Value:
    record = router.requests.get(request)
    if record is None:
        return mapped(
            {
                "state": "ended" if request in world.clients else "new",
                "number": 0,
                "writes": False,
                "overdue": False,
                "retries": 0,
            }
        )
    invariant(record.state is not RouterState.ABSENT, f"request {request} is held and absent")
    return mapped(
        {
            "state": record.state.value,
            "number": record.number,
            "writes": record.prefill is not None,
            "overdue": record.is_overdue,
            "retries": record.retries,
        }
    )


def _writer(prefill: PrefillCore | None, decode: Peer, ids: list[LeaseId]) -> dict[str, Value]:
    """What the prefill node holds. Of a dead one nothing is left."""
    if prefill is None:
        return {
            "alive": False,
            "writer": (_NO_WRITER,) * len(ids),
            "said": ("",) * len(ids),
            "floor": 1,
        }
    memory = prefill.memory[decode]
    return {
        "alive": True,
        "writer": tuple(_written(prefill, lease) for lease in ids),
        "said": tuple(_outcome(memory.outcome(lease.sequence)) for lease in ids),
        "floor": memory.floor,
    }


def _reach(decode: DecodeCore) -> str:
    """How far decode's one writer reaches. One that was cut is not kept."""
    reaches = list(decode.writers.values())
    invariant(len(reaches) <= 1, f"the twin has one writer, not {len(reaches)}")
    return _REACHES[reaches[0]] if reaches else "cut"


def _written(prefill: PrefillCore, lease: LeaseId) -> Value:
    record = prefill.leases.get(lease)
    if record is None:
        return _NO_WRITER
    invariant(record.state is not PrefillState.ABSENT, f"{lease} is held by its writer and absent")
    return mapped(
        {
            "state": record.state.value,
            "attempt": (record.attempt.request, record.attempt.number),
            "targets": _refs(record.targets),
            "open": bool(record.in_flight),
            "busy": record.steps > 0,
        }
    )


def _granted(decode: DecodeCore, lease: LeaseId) -> Value:
    record = decode.leases.get(lease)
    if record is None:
        return _NO_LEASE
    invariant(record.state is not DecodeState.ABSENT, f"{lease} is held and absent")
    return mapped(
        {
            "state": record.state.value,
            "attempt": (record.attempt.request, record.attempt.number),
            "pages": tuple(_named(decode, lease, ref) for ref in record.pages),
            "tail": _named(decode, lease, record.tail),
            "quiet": record.writer_is_quiet,
            "looks": record.verifications > 0,
        }
    )


def _refs(refs: tuple[PageRef, ...]) -> Value:
    return tuple(ref.page for ref in refs)


def _outcome(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    if isinstance(outcome, Done):
        return "done"
    return "refused" if isinstance(outcome, Refused) else "failed"


# ------------------------------------------------------------ wires
def _wires(world: World) -> Value:
    """Every wire on which something is ever said; a wire is named by the letters of its ends."""
    letters = {peer: _letter(core) for peer, core in world.cores.items()}
    letters |= {peer: _ROLE_LETTERS[role] for peer, role in world.dead.items()}
    found: dict[int | str, Value] = dict.fromkeys(_WIRES, ())
    for (sender, receiver), messages in world.wires.items():
        name = letters[sender] + letters[receiver]
        invariant(name in found, f"the twin has no wire {name}")
        found[name] = tuple(_message(message) for message in messages)
    return mapped(found)


def _letter(core: object) -> str:
    return {RouterCore: "r", PrefillCore: "p", DecodeCore: "d"}[type(core)]


def _of_attempt(message: Any) -> tuple[Value, ...]:
    return (type(message).__name__, message.attempt.request, message.attempt.number)


_FIELDS: Mapping[type, Callable[[Any], tuple[Value, ...]]] = {
    events.Reserve: _of_attempt,
    events.Abort: _of_attempt,
    events.Reserved: lambda m: (*_of_attempt(m), m.lease.sequence, _refs(m.pages)),
    events.ReserveRefused: lambda m: (*_of_attempt(m), m.refusal.code.value),
    events.TokenMade: _of_attempt,
    events.AttemptEnded: lambda m: (*_of_attempt(m), m.end.reason.value),
    events.Prefill: lambda m: (*_of_attempt(m), m.lease.sequence, _refs(m.pages)),
    events.Close: lambda m: ("Close", m.lease.sequence),
    events.LowestLive: lambda m: ("LowestLive", m.sequence),
    events.Closed: lambda m: ("Closed", m.lease.sequence, _outcome(m.outcome)),
}


def _message(message: object) -> Value:
    invariant(type(message) in _FIELDS, f"the twin knows no {type(message).__name__}")
    return _FIELDS[type(message)](message)
