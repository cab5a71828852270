"""The nodes of the seam: real cores, ledgers, pools, seals, guard, prefix index and executors.

Rules: every pool begins full of what an earlier process left (bytes of 0xFF, which are no numbers). Clocks
are the world's. Only the model, the control plane and the transport are played.

It starts no process and no loop: whoever holds a `Seat` says when it hears, polls and computes.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tests.serving.seam.oracle import LAYOUT, PAGE_TOKENS, ProvenanceModel
from tests.serving.seam.wires import Plane, Receiver, SeamTransport

from kvfence.engine.decode_executor import DecodeExecutor
from kvfence.engine.pool_views import pool_views
from kvfence.engine.prefill_executor import PrefillExecutor
from kvfence.kv import KvIdentity, Pool, PrefixIndex
from kvfence.protocol import (
    DecodeConfig,
    DecodeCore,
    PageLedger,
    PageState,
    PrefillConfig,
    PrefillCore,
    RouterConfig,
    RouterCore,
)
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer, Role
from kvfence.serving.cutter import Cutter
from kvfence.serving.decode_node import DecodeNode, DecodeParts
from kvfence.serving.decode_pages import DecodePages
from kvfence.serving.page_links import PageLinks
from kvfence.serving.prefill_node import PrefillNode, PrefillParts
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.serving.router_node import RouterNode
from kvfence.serving.wire import HelloMessage

SPARE_PAGES = 3
CONTEXT_TOKENS = 40


@dataclass
class Seat:
    """One running incarnation. A stopped one neither hears nor computes, and knows nothing of it."""

    me: Peer
    role: Role
    node: Any
    core: Any
    stopped: bool = False

    @property
    def plane(self):
        """Its control plane."""
        return self.node.plane

    def hear(self, inbound):
        """Take one message or loss in at once. False when the process ends by it, as it may."""
        try:
            assert self.node.deliver(inbound)
            if self.role is not Role.ROUTER:
                self.node._hear(block=False)
        except OperatorError:
            return False
        return True

    def turn(self):
        """Once around the loop, without the hearing."""
        if self.role is Role.ROUTER:
            self.node._driver.fire_due()
            return
        self.node.poll()
        self.node.driver.fire_due()
        self.node.compute()

    def hello(self):
        """What it says of itself."""
        if self.role is Role.ROUTER:
            return HelloMessage(role=Role.ROUTER, control_address="seam")
        return self.node.hello()

    def not_home(self):
        """What a node at rest should no longer hold."""
        if self.role is Role.ROUTER:
            return [f"request {number}: {request.state}" for number, request in self.core.requests.items()]
        parts, node, ledger = self.node._parts, self.node, self.node._parts.ledger
        left = [f"{lease}: {record.state}" for lease, record in self.core.leases.items()]
        home = (PageState.FREE, PageState.CACHED)
        left += [f"page {p}: {s}" for p, s in enumerate(map(PageState, ledger.state)) if s not in home]
        left += [f"page {page} is pinned" for page in range(ledger.total) if ledger.pins[page]]
        if self.role is Role.PREFILL:
            kept = (node._hands, parts.executor.jobs, parts.pages._prompts)
        else:
            kept = (node._asks._asks, node._asks._attempts, parts.executor.rows)
        return left + [f"still kept: {held}" for held in kept if held]


class _Loop:
    """An event loop for the router: what is called soon is called now, what fails is raised at once."""

    def call_soon_threadsafe(self, callback):
        callback()

    def call_later(self, _seconds, _callback):
        return SimpleNamespace(cancel=lambda: None)  # the world fires what is due

    def create_future(self):
        return SimpleNamespace(done=lambda: False, set_exception=_raise)


def _raise(error):
    raise error


def _pool(pages):
    pool = Pool.create(LAYOUT, pages)
    pool.buffer[:] = 0xFF
    pool.page(pool.padding_page)[:] = 0
    return pool


def router_seat(world, me):
    """The router."""
    config = RouterConfig(
        context_tokens=CONTEXT_TOKENS, page_tokens=PAGE_TOKENS, queue_ms=20_000, request_ms=100_000
    )
    core = RouterCore(me, config, world.decisions)
    node = RouterNode(core, loop=_Loop(), started_at=0.0)
    node._driver._clock = world.clock
    node.attach(Plane(world, me, Role.ROUTER))
    return Seat(me, Role.ROUTER, node, core)


def decode_seat(world, me):
    """A decode node on a pool of the weather's size."""
    pages = world.weather.pages
    pool, ledger = _pool(pages + SPARE_PAGES), PageLedger(pages, spare_pages=SPARE_PAGES)
    config = DecodeConfig(
        page_tokens=PAGE_TOKENS,
        lease_ms=world.weather.lease_ms,
        close_retry_ms=300,
        close_retries_max=5,
        growth_ms=3_000,
    )
    core = DecodeCore(me, config, world.decisions, ledger)
    world.pools[me], world.receivers[me] = pool, Receiver(world, me)
    parts = DecodeParts(
        core=core,
        ledger=ledger,
        pages=DecodePages(
            pool,
            ledger,
            level=world.level,
            incarnation=me.incarnation,
            node_secret=b"n" * 32,
            decisions=world.decisions,
        ),
        executor=DecodeExecutor(
            ProvenanceModel(me),
            pool_views(pool, world.decisions),
            page_tokens=PAGE_TOKENS,
            max_batch=3,
            decisions=world.decisions,
        ),
        cutter=Cutter(world.receivers[me], kill=world.kill, clock=world.clock),
        facts={},
        pool_tokens=pages * PAGE_TOKENS,
        pages_address="seam",
    )
    return _compute_seat(world, DecodeNode(me, parts), core)


def prefill_seat(world, me):
    """A prefill node; its chunks are of a size of its own."""
    pages = world.weather.prefill_pages or world.weather.pages
    pool, ledger = _pool(pages), PageLedger(pages)
    config = PrefillConfig(
        page_bytes=LAYOUT.page_bytes,
        page_tokens=PAGE_TOKENS,
        batch_bytes=2 * LAYOUT.page_bytes,
        batch_ms=2_000,
    )
    index = PrefixIndex.ruled_by(
        world.decisions, KvIdentity("model", "revision", "dtype", PAGE_TOKENS), ledger
    )
    core = PrefillCore(me, config, world.decisions, ledger, index)
    world.pools[me] = pool
    parts = PrefillParts(
        core=core,
        ledger=ledger,
        pages=PrefillPages(pool, ledger, level=world.level, decisions=world.decisions),
        executor=PrefillExecutor(
            ProvenanceModel(me),
            pool_views(pool, world.decisions),
            chunk_tokens=world.rng.choice((3, 6, 64)),
        ),
        links=PageLinks(
            transport=SeamTransport(world), me=me, secret=b"s" * 32, pool=pool, wake=lambda: None
        ),
        facts={},
        pool_tokens=pages * PAGE_TOKENS,
    )
    return _compute_seat(world, PrefillNode(me, parts), core)


def _compute_seat(world, node, core):
    node.driver._clock = world.clock
    node.attach(Plane(world, node.me, node.ROLE))
    return Seat(node.me, node.ROLE, node, core)


SEATS = {Role.ROUTER: router_seat, Role.DECODE: decode_seat, Role.PREFILL: prefill_seat}
