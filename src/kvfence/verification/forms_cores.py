"""Forms of the three cores, each with what its process keeps around it.

What is left out, and why it may be: `counts` and `trail` (nothing reads them), generations of timers (a
pending one is live or not there), `next_owner` (a new number is always a new name), `attempts` (the leases
by another key), how a lease ended on decode beyond whether it was preempted (nothing asks), tombstones
that nobody can speak of any more (`Sink.tomb`). `closes_asked` counts to its bound and stays there.
"""

# ruff: noqa: SLF001 -- a form reads all that a core holds, what is private to it included.

from dataclasses import dataclass, field
from typing import Any

from kvfence.kv.prefix import PrefixIndex
from kvfence.protocol import DecodeCore, PageLedger, PrefillCore, RouterCore
from kvfence.protocol.commands import VerifySeals
from kvfence.protocol.machine import StepBook
from kvfence.protocol.words import EndReason, LeaseId, PageRef, Peer, Timer
from kvfence.verification.forms import (
    Content,
    put_domain,
    put_job,
    put_manifest,
    put_outcome,
    put_pass,
    put_row,
)
from kvfence.verification.parts import Sink
from kvfence.world import Core, Job, Link, Pass, Row


@dataclass(slots=True)
class Node:
    """A living node: its core, and what its process keeps. Nothing in it is changed once it is a part's."""

    core: Core
    jobs: dict[tuple[Peer, LeaseId], Job] = field(default_factory=dict)
    rows: dict[tuple[Peer, LeaseId], Row] = field(default_factory=dict)
    passes: dict[Peer, tuple[Pass, ...]] = field(default_factory=dict)
    verifies: dict[tuple[Peer, LeaseId], VerifySeals] = field(default_factory=dict)
    cuts: dict[tuple[Peer, Peer], None] = field(default_factory=dict)
    timers: dict[tuple[Peer, Timer], tuple[int, int]] = field(default_factory=dict)
    links: dict[tuple[Peer, Peer], Link] = field(default_factory=dict)


def put_node(sink: Sink, content: Content, node: Node | None) -> None:
    """Write a node; None is one that is dead."""
    if node is None:
        sink.put("dead")
        return
    core = node.core
    sink.peer(core.me)
    sink.put(core.is_draining)
    for name in sorted(core.peers._known):
        known = core.peers._known[name]
        sink.peer(known.peer)
        sink.put(known.role.value, known.is_alive)
    if isinstance(core, RouterCore):
        _put_router(sink, core, node)
    elif isinstance(core, PrefillCore):
        _put_prefill(sink, content, core, node)
    else:
        _put_decode(sink, content, core, node)


# ---------------------------------------------------------------- router
def _put_router(sink: Sink, core: RouterCore, node: Node) -> None:
    sink.put("router", len(core.requests))
    timers = {(timer.kind, timer.key) for _, timer in node.timers}
    for number, record in core.requests.items():
        sink.attempt(record.attempt)
        sink.put(
            record.prompt_tokens,
            record.max_tokens,
            record.state.value,
            record.delivered_tokens,
            record.lost_tokens > 0,
            record.retries,
            record.is_overdue,
            record.pages,
        )
        sink.peer(record.decode)
        sink.peer(record.prefill)
        sink.put(tuple(sorted(kind.value for kind, key in timers if key == number)))
    sink.put(len(core.queue))
    for number in core.queue:
        sink.request(number)
    for peer in sorted(core.nodes):
        load = core.nodes[peer]
        sink.peer(peer)
        sink.put(load.role.value, load.pool_tokens, load.is_draining, load.is_full, load.pages)


# ---------------------------------------------------------------- what prefill and decode have in common
def _page_order(ledger: PageLedger, held: list[PageRef]) -> list[int]:
    """Pages in an order that their numbers do not decide: as they will be leased, then as they are held."""
    order = dict.fromkeys(reversed(ledger._free))
    order.update(dict.fromkeys(ref.page for ref in held))
    order.update(dict.fromkeys(range(ledger.total)))
    return list(order)


def _put_ledger(
    sink: Sink, pool: str, ledger: PageLedger, held: list[PageRef], incarnation: int | None
) -> None:
    """`incarnation` says whose lease numbers the owners are; None: a prefill node's own."""
    sink.pages += _page_order(ledger, held)
    sink.put(len(ledger._free))
    for page in sink.pages:
        owner = ledger.owner[page]
        sink.page(pool, page)
        sink.epoch(pool, page, ledger.epoch[page])
        sink.put(ledger.state[page], ledger.pins[page], owner > 0)
        if owner and incarnation is not None:
            sink.seq(incarnation, owner)
        elif owner:
            sink.owner(pool, owner)
    sink.pages.append(ledger.total)  # the page of padding rows, which is never leased


def _put_steps(sink: Sink, steps: StepBook) -> None:
    for step, leases in steps._steps.items():
        sink.put("step", step)
        for lease in leases:
            sink.lease(lease)


def _put_passes(sink: Sink, pool: str, node: Node) -> None:
    for batch in node.passes.values():
        sink.put("pass", len(batch))
        for chunk in batch:
            put_pass(sink, pool, chunk)


# ---------------------------------------------------------------- prefill
def _put_prefill(sink: Sink, content: Content, core: PrefillCore, node: Node) -> None:
    pool = core.me.node
    held = [ref for record in core.leases.values() for ref in record.pages]
    sink.put("prefill")
    _put_ledger(sink, pool, core.ledger, held, None)
    timers = {timer.key for _, timer in node.timers}
    sink.put(len(core.leases))
    for record in core.leases.values():
        _put_written(sink, content, pool, record)
        sink.put(tuple(batch for batch in sorted(record.in_flight) if (record.lease, batch) in timers))
    for attempt in core.over:
        sink.tomb(attempt)
    for peer in sorted(core.memory):
        memory = core.memory[peer]
        sink.put("memory", len(memory.outcomes))
        sink.peer(peer)
        sink.bound(peer.incarnation, memory.floor)
        for sequence in sorted(memory.outcomes):
            sink.seq(peer.incarnation, sequence)
            put_outcome(sink, content, memory.outcomes[sequence])
    for peer in sorted(core.destroying):
        sink.put("destroying")
        sink.peer(peer)
    _put_steps(sink, core.steps)
    _put_index(sink, pool, core)
    for (_, lease), job in node.jobs.items():
        sink.put("job")
        sink.lease(lease)
        put_job(sink, pool, job)
    _put_passes(sink, pool, node)
    for (_, decode), link in sorted(node.links.items()):
        sink.put("link", link.value)
        sink.peer(decode)


def _put_written(sink: Sink, content: Content, pool: str, record: Any) -> None:
    sink.lease(record.lease)
    sink.attempt(record.attempt)
    sink.peer(record.router)
    sink.peer(record.decode)
    sink.owner(pool, record.owner)
    content.tokens(sink, record.attempt.request, record.tokens)
    put_domain(sink, content, record.attempt.request, record.domain)
    sink.refs(record.decode.node, record.targets)
    sink.refs(pool, record.pages)
    places = {ref.page: place for place, ref in enumerate(record.pages)}
    sink.put(
        record.prefix_pages,
        tuple(places.get(page) for page in record.pinned),
        record.state.value,
        record.computed_tokens,
        record.sealed_pages,
        record.early_pages,
        record.posted_pages,
        record.next_batch,
        *(tuple(sorted(n)) for n in (record.in_flight, record.stopped, record.lost, record.unproven)),
        record.steps,
        tuple(sorted(places[page] for page in record.published)),
        record.was_said,
    )
    content.token(sink, record.first_token)
    put_outcome(sink, content, record.outcome)


def _put_index(sink: Sink, pool: str, core: PrefillCore) -> None:
    index = core.prefix
    if not isinstance(index, PrefixIndex):
        return
    places = {key: place for place, key in enumerate(index._nodes)}
    for entry in index._nodes.values():
        parent = None if entry.parent is None else places.get(entry.parent.key, "forgotten")
        sink.put("indexed", entry.domain, entry.chunk.hex(), parent, entry.key.hex())
        sink.ref(pool, entry.ref)
    for ref in index._orphans.values():
        sink.put("orphan")
        sink.ref(pool, ref)


# ---------------------------------------------------------------- decode
def _put_decode(sink: Sink, content: Content, core: DecodeCore, node: Node) -> None:
    pool, incarnation = core.me.node, core.me.incarnation
    held = [ref for record in core.leases.values() for ref in (*record.pages, record.tail, *record.grown)]
    sink.put("decode")
    _put_ledger(sink, pool, core.ledger, held, incarnation)
    sink.seq(incarnation, core.next_sequence)
    sink.put(core._lowest_told == core.lowest_live)
    timers = {(timer.kind, timer.key) for _, timer in node.timers}
    sink.put(len(core.leases))
    for lease, record in core.leases.items():
        _put_granted(sink, content, pool, record, core.config.close_retries_max)
        sink.put(tuple(sorted(kind.value for kind, key in timers if key == lease)))
    for attempt in core.over:
        sink.tomb(attempt)
    for lease in core.waiting:
        sink.put("waits")
        sink.lease(lease)
    for peer in sorted(core.writers):
        sink.peer(peer)
        sink.put(core.writers[peer].value)
    for page in [page for page in sink.pages if page in core.poisoned]:
        poison = core.poisoned[page]
        sink.put("poison", tuple((peer.node, peer.incarnation) for peer in sorted(poison.writers)))
        sink.page(pool, page)
        sink.lease(poison.lease)
    _put_steps(sink, core.steps)
    for (_, lease), row in node.rows.items():
        sink.put("row")
        sink.lease(lease)
        put_row(sink, pool, row)
    _put_passes(sink, pool, node)
    for (_, lease), verify in sorted(node.verifies.items()):
        sink.put("verify")
        sink.lease(lease)
        sink.refs(pool, verify.pages)
    for _, writer in sorted(node.cuts):
        sink.put("cut")
        sink.peer(writer)


def _put_granted(sink: Sink, content: Content, pool: str, record: Any, retries_max: int) -> None:
    sink.lease(record.lease)
    sink.attempt(record.attempt)
    sink.peer(record.router)
    sink.peer(record.writer)
    content.hash(sink, record.token_hash)
    sink.refs(pool, record.pages)
    sink.ref(pool, record.tail)
    sink.refs(pool, record.grown)
    sink.put(record.original is not None)
    if record.original is not None:
        sink.ref(pool, record.original)
    held = [*record.pages, record.tail, *record.grown]
    end = record.end
    sink.put(
        record.tokens,
        record.state.value,
        record.writer_is_quiet,
        record.steps,
        record.verifications,
        record.tail_is_owed,
        tuple(sorted(record.original_steps)),
        tuple(place for place, ref in enumerate(held) if ref.page in record.poisoned),
        record.original is not None and record.original.page in record.poisoned,
        min(record.closes_asked, retries_max + 1),
        None if end is None else end.reason is EndReason.PREEMPTED,
    )
    put_manifest(sink, content, record.manifest)
