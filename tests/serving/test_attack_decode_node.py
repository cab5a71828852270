"""A decode node on a real core, ledger, pool and guard; only the model and the wire are played."""

from types import SimpleNamespace

import pytest
import torch

from kvfence.engine.decode_executor import DecodeExecutor
from kvfence.engine.sampling import SamplingParams, TokenLogprobs
from kvfence.kv import FenceLevel, LayerShape, PageLayout, Pool, digest_page, make_trailer
from kvfence.protocol import (
    Decisions,
    DecodeConfig,
    DecodeCore,
    PageLedger,
    PageState,
    events,
    hash_tokens,
)
from kvfence.protocol.words import AttemptId, Done, EndReason, Failed, Failure, Manifest, Peer, Role
from kvfence.serving.decode_node import DecodeNode, DecodeParts
from kvfence.serving.decode_pages import DecodePages
from kvfence.serving.wire import (
    EndedMessage,
    ReservedMessage,
    ReserveMessage,
    TokensMessage,
    closed_message,
    unpack_refs,
)

ROUTER, WRITER, ME = Peer("router", 3), Peer("prefill-0", 7), Peer("decode-0", 5)
PAGE_TOKENS = 4
LAYOUT = PageLayout((LayerShape(1, 2, 2),), PAGE_TOKENS, "float32")
PROMPT = (11, 12, 13)  # its first step fills the page
TOKEN = 1


class Model:
    """Makes TOKEN wherever it is asked."""

    eos_token_ids = ()

    def decode(self, views, rows):
        del views
        return torch.eye(4)[[TOKEN] * len(rows)]


class Wire:
    address = "nowhere"

    def __init__(self):
        self.sent = []

    def send(self, peer, body):
        self.sent.append((peer, body))

    def announce(self, hello, *, now=False):
        pass

    def drops(self):
        return {}

    def of(self, kind):
        return [body for _, body in self.sent if isinstance(body, kind)]


class Node:
    """The node, with what a router and a writer do to it."""

    def __init__(self, pages, level=FenceLevel.PARANOID):
        self.pool, self.ledger, self.wire = Pool.create(LAYOUT, pages), PageLedger(pages), Wire()
        self.pages = DecodePages(
            self.pool, self.ledger, level=level, incarnation=ME.incarnation, node_secret=b"n" * 32
        )
        self.core = DecodeCore(ME, DecodeConfig(page_tokens=PAGE_TOKENS), Decisions(), self.ledger)
        parts = DecodeParts(
            core=self.core,
            ledger=self.ledger,
            pages=self.pages,
            executor=DecodeExecutor(Model(), None, page_tokens=PAGE_TOKENS, max_batch=16),
            cutter=SimpleNamespace(ask=lambda peer: None),
            facts={},
            pool_tokens=pages * PAGE_TOKENS,
            pages_address="",
        )
        self.node = DecodeNode(ME, parts)
        self.node.attach(self.wire)
        self.node.driver.feed(events.Hello(ROUTER, Role.ROUTER))
        self.node.driver.feed(events.Hello(WRITER, Role.PREFILL, 64, 16))

    def reserve(self, request, max_tokens=8):
        attempt = AttemptId(ROUTER.incarnation, request, 1)
        self.node.on_message(
            ROUTER,
            ReserveMessage(
                attempt=attempt,
                writer=WRITER,
                tokens=len(PROMPT),
                max_tokens=max_tokens,
                token_hash=hash_tokens(PROMPT),
                sampling=SamplingParams(seed=1, temperature=0.0),
            ),
        )
        (reserved,) = [body for body in self.wire.of(ReservedMessage) if body.attempt == attempt]
        return reserved

    def write(self, reserved):
        (ref,) = unpack_refs(reserved.pages)
        self.pool.payload(ref.page)[:] = 0
        self.pool.trailer(ref.page)[:] = memoryview(
            make_trailer(
                reserved.lease,
                reserved.key,
                epoch=ref.epoch,
                ordinal=0,
                valid_tokens=len(PROMPT),
                digest=digest_page(self.pool.payload(ref.page)),
            )
        )

    def closed(self, reserved, first_logprobs=None):
        manifest = Manifest(reserved.lease, WRITER, len(PROMPT), 1, hash_tokens(PROMPT), TOKEN, len(PROMPT))
        return closed_message(reserved.lease, Done(manifest), first_logprobs, 0)

    def start(self, request):
        reserved = self.reserve(request)
        self.write(reserved)
        self.node.on_message(WRITER, self.closed(reserved))
        return reserved

    def ends(self):
        return {body.attempt.request: body.end for body in self.wire.of(EndedMessage)}

    def tokens(self):
        return [made for body in self.wire.of(TokensMessage) for made in body.tokens]


@pytest.mark.parametrize("level", list(FenceLevel))
def test_a_row_that_made_way_in_the_midst_of_a_step_touches_no_page_of_its_heir(level):
    """All three fill their page in one step; there is one page more, and the youngest makes way."""
    node = Node(pages=4, level=level)
    for request in (1, 2, 3):
        node.start(request)
    node.node.compute()
    assert {request: end.reason for request, end in node.ends().items()} == {3: EndReason.PREEMPTED}
    ended_at = next(at for at, (_, body) in enumerate(node.wire.sent) if isinstance(body, EndedMessage))
    late = [body for _, body in node.wire.sent[ended_at:] if isinstance(body, TokensMessage)]
    assert not [made for body in late for made in body.tokens if made.attempt.request == 3]
    for _ in range(3):
        node.node.compute()
    assert [end.integrity for end in node.ends().values()] == [None]
    assert node.ledger.count(PageState.POISONED) == 0


def test_what_a_stranger_says_of_a_lease_goes_into_no_answer():
    node = Node(pages=4)
    reserved = node.reserve(1)
    node.write(reserved)
    others, own = TokenLogprobs(-9.0), TokenLogprobs(-0.5)
    node.node.on_message(Peer("prefill-1", 8), node.closed(reserved, others))
    assert node.tokens() == []
    node.node.on_message(WRITER, node.closed(reserved, own))
    node.node.compute()
    assert node.tokens()[0].logprobs == own
    node.node.on_message(WRITER, closed_message(reserved.lease, Failed(Failure.ABORTED), None, 0))
