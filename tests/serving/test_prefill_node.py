"""A prefill node over a real core, pool and executor: prompts in, sealed pages and Closed out.

The test is the router, the decode node and the transport.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.kv.pools import LAYOUT, PAGE_TOKENS
from tests.serving.link_fakes import FakeTransport
from tests.serving.node_fakes import (
    DECODE,
    GREEDY,
    PREFILL,
    ROUTER,
    CountingModel,
    FakePlane,
    attempt_of,
    figure,
    hello_from,
    prefill_executor,
    turn,
)

from kvfence.engine.sampling import SamplingParams
from kvfence.kv import SEAL_DTYPE, FenceLevel, KvIdentity, Pool, PrefixIndex
from kvfence.protocol import (
    Decisions,
    PageLedger,
    PageState,
    PrefillConfig,
    PrefillCore,
    commands,
    hash_tokens,
)
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import Failure, LeaseId, Manifest, PageRef, Peer, RefusalCode, Role
from kvfence.serving.control import LostPeer, Received
from kvfence.serving.page_links import PageLinks
from kvfence.serving.prefill_node import PrefillNode, PrefillParts
from kvfence.serving.prefill_pages import PrefillPages
from kvfence.serving.wire import (
    AbortMessage,
    ClosedMessage,
    CloseMessage,
    LowestLiveMessage,
    PrefillMessage,
    ReservedMessage,
    pack_refs,
    pack_tokens,
)
from kvfence.transport import TransportError

PAGES = 8
KEY = b"k" * 32
LEASE = LeaseId(DECODE.incarnation, 1)
PROMPT = tuple(range(20, 26))  # a page and a half


@dataclass
class Rig:
    """One prefill node; router, decode node and transport are the test's."""

    level: FenceLevel = FenceLevel.SEALED
    chunk_tokens: int = 1024
    is_linked: bool = True
    model: CountingModel = field(default_factory=CountingModel)

    def __post_init__(self) -> None:
        self.pool, self.ledger = Pool.create(LAYOUT, PAGES), PageLedger(PAGES)
        self.plane, self.transport = FakePlane(), FakeTransport()
        config = PrefillConfig(page_bytes=LAYOUT.page_bytes, page_tokens=PAGE_TOKENS)
        prefix = PrefixIndex(KvIdentity("m", "r", "float32", PAGE_TOKENS), self.ledger)
        self.node = PrefillNode(
            PREFILL,
            PrefillParts(
                core=PrefillCore(PREFILL, config, Decisions(), self.ledger, prefix),
                ledger=self.ledger,
                pages=PrefillPages(self.pool, self.ledger, level=self.level),
                executor=prefill_executor(self.model, self.pool, self.chunk_tokens),
                links=PageLinks(
                    transport=self.transport,
                    me=PREFILL,
                    secret=b"s" * 32,
                    pool=self.pool,
                    wake=lambda: self.node.wake(),
                ),
                facts={"version": "0"},
                pool_tokens=PAGES * PAGE_TOKENS,
            ),
        )
        self.node.attach(self.plane)
        self.hear(hello_from(ROUTER, Role.ROUTER))
        if self.is_linked:
            self.hear(hello_from(DECODE, Role.DECODE, pool_tokens=32, pages_address="there"))

    def hear(self, *inbound):
        turn(self.node, *inbound)

    def run(self, turns=4):
        for _ in range(turns):
            self.hear()

    @property
    def writer(self):
        return self.transport.writers[-1]

    def ask(self, tokens=PROMPT, *, lease=LEASE, request=1, sampling=GREEDY, domain="d", made_tokens=0):
        """Hand a lease over, as the router does."""
        pages = -(-len(tokens) // PAGE_TOKENS)
        refs = tuple(PageRef(page + 1, 1) for page in range(pages))
        message = PrefillMessage(
            attempt=attempt_of(request),
            decode=DECODE,
            lease=lease,
            pages=pack_refs(refs),
            key=KEY,
            tokens=pack_tokens(tokens),
            domain=domain,
            sampling=sampling,
            made_tokens=made_tokens,
        )
        self.hear(Received(ROUTER, message))

    def land(self):
        """Every batch that was posted is written."""
        batches, self.writer.posted = self.writer.posted, []
        for batch in batches:
            self.writer.write(batch)
        self.hear()
        return batches

    def closed(self) -> ClosedMessage:
        (closed,) = self.plane.take(ClosedMessage)
        return closed


@pytest.fixture
def rig():
    return Rig()


def test_a_prompt_is_computed_written_and_closed_in_this_order(rig):
    rig.ask()
    rig.run()
    assert rig.plane.take(ClosedMessage) == [], "nothing is closed before its writes have completed"
    batches = rig.land()
    assert [ref.page for batch in batches for ref in batch.targets] == [1, 2]
    assert rig.closed() == ClosedMessage(
        lease=LEASE, done=Manifest(LEASE, PREFILL, 6, 2, hash_tokens(PROMPT), 26, 6)
    )
    assert figure(rig.node, "prefill_tokens_total") == 6
    assert figure(rig.node, "transfer_bytes_total") == 200
    assert figure(rig.node, "transfer_seconds_total") == 0.5 * len(batches)


def test_each_page_travels_under_a_seal_of_the_lease(rig):
    rig.ask()
    rig.run()
    trailers = np.frombuffer(b"".join(batch.trailers for batch in rig.land()), SEAL_DTYPE)
    assert trailers["ordinal"].tolist() == [0, 1]
    assert trailers["valid_tokens"].tolist() == [4, 2]
    assert set(trailers["sequence"].tolist()) == {LEASE.sequence}


def test_below_the_level_sealed_trailers_are_blank():
    rig = Rig(level=FenceLevel.CONTRACT)
    rig.ask()
    rig.run()
    assert not any(b"".join(batch.trailers for batch in rig.land()))
    assert rig.closed().done is not None


def test_full_pages_leave_while_later_chunks_are_computed():
    rig = Rig(chunk_tokens=PAGE_TOKENS)
    rig.ask(tuple(range(20, 32)))
    assert [len(batch.sources) for batch in rig.writer.posted] == [1]
    assert rig.model.passes == 1
    rig.hear()
    assert rig.model.passes == 2


def test_a_prefix_is_computed_once_for_a_domain_and_again_for_another(rig):
    for request, domain, cached in ((1, "a", 0), (2, "a", PAGE_TOKENS), (3, "b", 0)):
        rig.ask(lease=LeaseId(7, request), request=request, domain=domain)
        rig.run()
        rig.land()
        assert rig.closed().cached_tokens == cached
    assert figure(rig.node, "prefill_cached_tokens_total") == PAGE_TOKENS


def test_logprobs_of_the_first_token_travel_with_closed(rig):
    rig.ask(sampling=SamplingParams(seed=1, temperature=0.0, logprobs=1))
    rig.run()
    rig.land()
    assert rig.closed().first_logprobs.top[0][0] == 26


def test_tokens_of_earlier_attempts_are_output_to_the_sampler(rig):
    rig.model.during = lambda: rows.append(rig.node._executor.jobs[LEASE].sample_row())
    rows = []
    rig.ask(made_tokens=2)
    assert rows[0].prompt_tokens == PROMPT[:4]
    assert dict(rows[0].output_counts) == {24: 1, 25: 1}


def test_a_prompt_that_no_pool_of_this_node_holds_is_refused_and_forgotten(rig):
    rig.ask(tuple(range(PAGES * PAGE_TOKENS + 1)))
    refused = rig.closed().refused
    assert (refused.code, refused.needed_tokens, refused.limit_tokens) == (RefusalCode.CONTEXT_LENGTH, 33, 32)
    assert rig.node._hands == {}
    assert figure(rig.node, "refusals_total|reason=context_length_exceeded") == 1
    assert rig.model.passes == 0, "no placeholder is computed in its stead"


def test_without_a_page_connection_nothing_is_written_and_the_lease_fails():
    rig = Rig(is_linked=False)
    rig.ask()
    rig.run()
    assert rig.closed().failed is Failure.TRANSFER


def test_a_write_that_was_lost_quietly_fails_the_lease_at_once(rig):
    rig.ask()
    rig.run(1)
    for batch in list(rig.writer.posted):
        rig.writer.lose(batch, quiet=True)
    rig.run(2)
    assert rig.closed().failed is Failure.TRANSFER


def test_a_write_that_may_still_land_is_not_closed_before_the_connection_is_proven_quiet(rig):
    rig.ask()
    rig.run(1)
    for batch in list(rig.writer.posted):
        rig.writer.lose(batch, quiet=False)
    rig.writer.alive = False
    rig.run(3)
    assert rig.plane.take(ClosedMessage) == []
    rig.hear(hello_from(DECODE, Role.DECODE, pool_tokens=32, pages_address="there"))
    rig.run(2)
    assert rig.closed().failed is Failure.TRANSFER


def test_pages_that_are_not_the_prompts_own_any_more_fail_it(rig):
    def give_a_page_away():
        (page, *_) = (ref.page for ref in rig.node._executor.jobs[LEASE].pages)
        rig.ledger.owner[page] = 99

    rig.model.during = give_a_page_away
    rig.ask()
    assert figure(rig.node, "integrity_failures_total|reason=guard_owner") == 1
    assert rig.writer.posted == [], "nothing of it leaves"


def test_a_pass_that_fails_fails_its_prompts_and_the_node_goes_on(rig):
    rig.model.fault = RuntimeError("out of memory")
    rig.ask()
    assert rig.closed().failed is Failure.EXECUTOR
    rig.ask(lease=LeaseId(7, 2), request=2)
    rig.run()
    rig.land()
    assert rig.closed().done is not None


def test_a_fault_of_ours_ends_the_process(rig):
    rig.model.fault = KeyError("a bug")
    with pytest.raises(KeyError):
        rig.ask()


def test_a_first_token_from_logits_that_are_no_numbers_fails_the_prompt(rig):
    rig.model.broken = {PROMPT[-1]}
    rig.ask()
    assert rig.closed().failed is Failure.EXECUTOR


def test_an_aborted_prompt_is_closed_when_its_writes_are_over(rig):
    rig.ask()
    rig.hear(Received(ROUTER, AbortMessage(attempt_of(1))))
    assert rig.plane.take(ClosedMessage) == []
    rig.land()
    assert rig.closed().failed is Failure.ABORTED
    assert rig.ledger.count(PageState.FREE) + rig.ledger.count(PageState.CACHED) == PAGES


def test_closing_is_pulled_and_answered_each_time(rig):
    rig.ask()
    rig.run()
    rig.land()
    first = rig.closed()
    rig.hear(Received(DECODE, CloseMessage(LEASE)))
    again = rig.closed()
    assert (again.lease, again.done is None) == (LEASE, first.done is None)


def test_below_the_lowest_live_lease_nothing_is_computed_or_kept(rig):
    rig.hear(Received(DECODE, LowestLiveMessage(5)))
    rig.ask()
    assert rig.node._hands == {}
    assert rig.model.passes == 0
    rig.ask(lease=LeaseId(7, 5), request=2)
    assert rig.model.passes == 1


def test_a_decode_node_that_the_router_speaks_of_is_tried_once_and_after_its_hello_again(rig):
    other = Peer("decode-1", 4)
    rig.transport.fault = TransportError("nobody there")
    tries = []
    connect = rig.transport.connect
    rig.transport.connect = lambda **facts: tries.append(facts["target"]) or connect(**facts)
    for heard in (False, False, True, True):
        rig.node.on_peer(other, Role.DECODE, "there", heard=heard)
    assert tries == [other] * 3


def test_only_decode_nodes_are_connected_to(rig):
    before = len(rig.transport.writers)
    rig.node.on_peer(Peer("prefill-1", 4), Role.PREFILL, None, heard=True)
    rig.node.on_peer(Peer("decode-1", 4), Role.DECODE, None, heard=True)
    assert len(rig.transport.writers) == before


def test_a_decode_node_that_is_lost_loses_its_connection(rig):
    rig.hear(LostPeer(DECODE))
    rig.hear()
    assert not rig.writer.alive
    assert rig.node.hello().facts["linked_decode_nodes"] == 0


def test_hello_says_what_the_node_has(rig):
    hello = rig.node.hello()
    assert (hello.role, hello.pages_address, hello.pool_tokens, hello.free_pages) == (
        Role.PREFILL,
        None,
        32,
        PAGES,
    )
    assert hello.facts == {"version": "0", "linked_decode_nodes": 1}
    assert hello.stats["queue_length|queue=prompts"] == 0


def test_a_message_for_another_role_is_counted_and_changes_nothing(rig):
    rig.hear(Received(ROUTER, ReservedMessage(attempt_of(1), LEASE, b"", b"")))
    assert rig.plane.senseless == 1


def test_references_that_are_cut_short_are_counted_and_change_nothing(rig):
    message = PrefillMessage(attempt_of(1), DECODE, LEASE, b"123", KEY, pack_tokens(PROMPT), "d", GREEDY)
    rig.hear(Received(ROUTER, message))
    assert rig.plane.senseless == 1
    assert rig.model.passes == 0


def test_a_command_of_another_role_is_our_own_fault(rig):
    with pytest.raises(InvariantError, match="DeliverToken"):
        rig.node.carry_out(commands.DeliverToken(1, 2))
