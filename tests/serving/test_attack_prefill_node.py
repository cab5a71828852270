"""A prefill node on a real core, ledger and pool; only the model and the wire are played."""

from types import SimpleNamespace

import torch

from kvfence.engine.prefill_executor import PrefillExecutor
from kvfence.engine.sampling import SamplingParams
from kvfence.kv import FenceLevel, LayerShape, PageLayout, Pool
from kvfence.protocol import Decisions, NoPrefix, PageLedger, PrefillConfig, PrefillCore, events
from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer, Role
from kvfence.serving.page_links import PageLinks
from kvfence.serving.prefill_node import PrefillNode, PrefillParts
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.serving.wire import PrefillMessage, pack_refs, pack_tokens
from kvfence.transport import BatchLost
from kvfence.transport.base import Loss

ME, ROUTER, DECODE = Peer("prefill-0", 7), Peer("router", 3), Peer("decode-0", 5)
LEASE = LeaseId(DECODE.incarnation, 1)
LAYOUT = PageLayout((LayerShape(1, 2, 2),), 4, "float32")
PAGES = 8


class LosingTransport:
    """A connection that gives up every batch after some of it was sent."""

    name = "losing"

    def __init__(self):
        self.alive, self._lost = True, []

    def connect(self, **_):
        return self

    def post(self, batch):
        self.alive = False
        self._lost.append(BatchLost(batch.lease, batch.batch, Loss.CONNECTION, quiet=False))

    def stop_posting(self, lease, batch):
        pass

    def poll(self):
        lost, self._lost = self._lost, []
        return lost

    def destroy(self):
        return True


def test_a_lease_that_ends_in_silence_leaves_nothing_behind():
    pool, ledger = Pool.create(LAYOUT, PAGES), PageLedger(PAGES)
    core = PrefillCore(
        ME, PrefillConfig(page_bytes=LAYOUT.page_bytes, page_tokens=4), Decisions(), ledger, NoPrefix()
    )
    model = SimpleNamespace(prefill=lambda _views, chunks: torch.eye(8)[[1] * len(chunks)])
    executor = PrefillExecutor(model, None, chunk_tokens=64)
    links = PageLinks(transport=LosingTransport(), me=ME, secret=b"s" * 32, pool=pool, wake=lambda: None)
    parts = PrefillParts(
        core=core,
        ledger=ledger,
        pages=PrefillPages(pool, ledger, level=FenceLevel.SEALED),
        executor=executor,
        links=links,
        facts={},
        pool_tokens=PAGES * 4,
    )
    node = PrefillNode(ME, parts)
    sent = []
    node.attach(SimpleNamespace(send=lambda peer, body: sent.append(body)))
    node.driver.feed(events.Hello(ROUTER, Role.ROUTER))
    node.driver.feed(events.Hello(DECODE, Role.DECODE, 32, 8))
    node.on_peer(DECODE, Role.DECODE, "there", heard=True)
    node.on_message(
        ROUTER,
        PrefillMessage(
            attempt=AttemptId(ROUTER.incarnation, 1, 1),
            decode=DECODE,
            lease=LEASE,
            pages=pack_refs([PageRef(0, 1), PageRef(1, 1)]),
            key=b"k" * 32,
            tokens=pack_tokens((1, 2, 3, 4, 5)),
            domain="tenant",
            sampling=SamplingParams(seed=1, temperature=0.0),
        ),
    )
    assert node.compute()
    node.poll()
    assert core.leases == {}
    assert ledger.free_pages == PAGES
    assert sent == []  # nobody can say that nothing will land
    assert (node._hands, executor.jobs, parts.pages._prompts) == ({}, {}, {})
