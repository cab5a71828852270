"""A decode node over a real core, pool and executor: messages in, messages out, and the guard between.

The test is the router and the writer: it hears what the node sends, and writes the pages that were reserved.
"""

from dataclasses import dataclass, field

import pytest
from tests.kv.pools import LAYOUT, PAGE_TOKENS, write_sealed
from tests.serving.node_fakes import (
    DECODE,
    GREEDY,
    NODE_SECRET,
    PREFILL,
    ROUTER,
    CountingModel,
    FakePlane,
    attempt_of,
    decode_executor,
    figure,
    hello_from,
    turn,
)

from kvfence.kv import FenceLevel, Pool
from kvfence.protocol import Decisions, DecodeConfig, DecodeCore, PageLedger, PageState, commands
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.events import Cut
from kvfence.protocol.words import (
    End,
    EndReason,
    Failed,
    Failure,
    IntegrityReason,
    LeaseId,
    Manifest,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Role,
)
from kvfence.serving.control import LostPeer, Received
from kvfence.serving.decode_node import DecodeNode, DecodeParts
from kvfence.serving.decode_pages import DecodePages
from kvfence.serving.wire import (
    AbortMessage,
    ClosedMessage,
    CloseMessage,
    EndedMessage,
    LowestLiveMessage,
    PrefillMessage,
    ReservedMessage,
    ReserveMessage,
    ReserveRefusedMessage,
    TokensMessage,
    closed_message,
    pack_tokens,
    unpack_refs,
)

PAGES, SPARE = 8, 4
HASH = b"h" * 32


class FakeCutter:
    """Remembers which cuts were asked for; answers what the test says."""

    def __init__(self) -> None:
        self.asked: list[Peer] = []
        self.answers: list = []

    def ask(self, peer):
        self.asked.append(peer)

    def poll(self):
        answers, self.answers = self.answers, []
        return answers

    def wait_seconds(self):
        return float("inf")


@dataclass
class Rig:
    """One decode node, with its router and its writer played by the test."""

    level: FenceLevel = FenceLevel.SEALED
    pages: int = PAGES
    model: CountingModel = field(default_factory=CountingModel)

    def __post_init__(self) -> None:
        self.pool = Pool.create(LAYOUT, self.pages + SPARE)
        self.ledger = PageLedger(self.pages, spare_pages=SPARE)
        self.cutter, self.plane = FakeCutter(), FakePlane()
        core = DecodeCore(DECODE, DecodeConfig(page_tokens=PAGE_TOKENS), Decisions(), self.ledger)
        pages = DecodePages(
            self.pool,
            self.ledger,
            level=self.level,
            incarnation=DECODE.incarnation,
            node_secret=NODE_SECRET,
        )
        self.node = DecodeNode(
            DECODE,
            DecodeParts(
                core=core,
                ledger=self.ledger,
                pages=pages,
                executor=decode_executor(self.model, self.pool),
                cutter=self.cutter,
                facts={"version": "0"},
                pool_tokens=self.pages * PAGE_TOKENS,
                pages_address="shm:there",
            ),
        )
        self.node.attach(self.plane)
        self.hear(hello_from(ROUTER, Role.ROUTER), hello_from(PREFILL, Role.PREFILL, pool_tokens=32))
        assert self.plane.take() == [LowestLiveMessage(1)]

    def hear(self, *inbound):
        turn(self.node, *inbound)

    def reserve(self, request=1, tokens=6, max_tokens=3, **facts) -> ReservedMessage:
        self.hear(Received(ROUTER, self.reserve_message(request, tokens, max_tokens, **facts)))
        (reserved,) = self.plane.take(ReservedMessage)
        return reserved

    def reserve_message(self, request=1, tokens=6, max_tokens=3, sampling=GREEDY, **facts) -> ReserveMessage:
        return ReserveMessage(
            attempt=attempt_of(request),
            writer=PREFILL,
            tokens=tokens,
            max_tokens=max_tokens,
            token_hash=HASH,
            sampling=sampling,
            **facts,
        )

    def write(self, reserved: ReservedMessage, tokens=6) -> tuple[PageRef, ...]:
        """What the writer does: every page, sealed under the lease's key."""
        refs = unpack_refs(reserved.pages)
        for ordinal, ref in enumerate(refs):
            valid = min(PAGE_TOKENS, tokens - ordinal * PAGE_TOKENS)
            write_sealed(self.pool, reserved.lease, ref, ordinal, valid_tokens=valid, key=reserved.key)
        return refs

    def closed(self, reserved: ReservedMessage, tokens=6, first_token=10, **facts) -> Received:
        refs = unpack_refs(reserved.pages)
        manifest = Manifest(reserved.lease, PREFILL, tokens, len(refs), HASH, first_token, tokens)
        return Received(PREFILL, ClosedMessage(lease=reserved.lease, done=manifest, **facts))

    def start(self, request=1, tokens=6, max_tokens=3, first_token=10, **facts) -> ReservedMessage:
        """A request whose hand-over is good; its first step is made as well."""
        reserved = self.reserve(request, tokens, max_tokens, **facts)
        self.write(reserved, tokens)
        self.hear(self.closed(reserved, tokens, first_token))
        return reserved

    def run(self, turns=6):
        for _ in range(turns):
            self.hear()

    def told(self) -> tuple[dict[int, list[int]], dict[int, End]]:
        """Tokens and ends that the router heard, by request."""
        tokens: dict[int, list[int]] = {}
        ends: dict[int, End] = {}
        for body in self.plane.take(TokensMessage, EndedMessage):
            if isinstance(body, EndedMessage):
                ends[body.attempt.request] = body.end
            else:
                for made in body.tokens:
                    assert made.attempt.request not in ends, "no token follows an end"
                    tokens.setdefault(made.attempt.request, []).append(made.token)
        return tokens, ends


@pytest.fixture
def rig():
    return Rig()


def test_a_request_from_reservation_to_its_end(rig):
    reserved = rig.reserve()
    assert [ref.epoch for ref in rig.write(reserved)] == [1, 1]
    rig.hear(rig.closed(reserved, cached_tokens=4))
    rig.run()
    *messages, last = rig.plane.take(TokensMessage, EndedMessage)
    made = [made for message in messages for made in message.tokens]
    assert [(each.token, each.position) for each in made] == [(10, 6), (11, 7), (12, 8)]
    assert (last.end.reason, last.cached_tokens, last.attempt) == (EndReason.LENGTH, 4, attempt_of(1))
    assert figure(rig.node, "seals_verified_total") == 2
    assert rig.ledger.count(PageState.FREE) == PAGES + SPARE


def test_a_stop_token_ends_the_answer_early(rig):
    rig.start(max_tokens=9, first_token=61)
    rig.run(9)
    tokens, ends = rig.told()
    assert tokens == {1: [61, 62, 63, 0]}
    assert ends[1].reason is EndReason.STOP


@pytest.mark.parametrize("tokens", [4, 5, 7, 8])
def test_prompts_that_fill_their_pages_and_prompts_that_do_not(rig, tokens):
    rig.start(tokens=tokens, max_tokens=6)
    rig.run(9)
    assert rig.told()[0] == {1: [10, 11, 12, 13, 14, 15]}
    assert rig.ledger.count(PageState.FREE) == PAGES + SPARE


def test_the_writers_last_page_is_copied_before_anything_is_appended(rig):
    reserved = rig.reserve(tokens=6)
    refs = rig.write(reserved)
    original = rig.pool.page(refs[1].page).copy()
    rig.hear(rig.closed(reserved))
    assert rig.ledger.state[refs[1].page] == PageState.FREE, "the writer's page is not the row's any more"
    assert (rig.pool.page(refs[1].page) == original).all()


@pytest.mark.parametrize(
    ("spoil", "reason", "poisoned"),
    [
        (lambda rig, refs: None, IntegrityReason.SEAL_UNWRITTEN, 0),
        (
            lambda rig, refs: write_sealed(rig.pool, LeaseId(DECODE.incarnation, 99), refs[0], 0),
            IntegrityReason.SEAL_FOREIGN,
            1,
        ),
    ],
)
def test_a_hand_over_that_does_not_verify_ends_the_request_and_sends_nothing(rig, spoil, reason, poisoned):
    reserved = rig.reserve()
    spoil(rig, unpack_refs(reserved.pages))
    rig.hear(rig.closed(reserved))
    rig.run(2)
    tokens, ends = rig.told()
    assert tokens == {}
    assert (ends[1].reason, ends[1].integrity) == (EndReason.INTEGRITY, reason)
    assert figure(rig.node, f"integrity_failures_total|reason={reason.value}") == 1
    assert figure(rig.node, "pool_pages|state=poisoned") == poisoned


def test_a_manifest_that_is_not_the_reservation_ends_the_request(rig):
    reserved = rig.reserve(tokens=6)
    rig.write(reserved)
    rig.hear(rig.closed(reserved, tokens=1))
    tokens, ends = rig.told()
    assert tokens == {}
    assert ends[1].integrity is IntegrityReason.MANIFEST_TOKENS


def test_below_the_level_sealed_a_hand_over_is_believed_by_its_manifest():
    rig = Rig(level=FenceLevel.CONTRACT)
    reserved = rig.reserve()
    rig.hear(rig.closed(reserved))
    rig.run()
    assert rig.told()[0] == {1: [10, 11, 12]}
    assert figure(rig.node, "seals_verified_total") == 0


def test_the_guard_takes_out_a_row_whose_page_was_overwritten_and_no_other(rig):
    bad, good = rig.start(1, max_tokens=9), rig.start(2, tokens=4, max_tokens=4, first_token=20)
    rig.told()
    write_sealed(rig.pool, good.lease, unpack_refs(bad.pages)[0], 0, key=good.key)
    rig.run()
    tokens, ends = rig.told()
    assert (ends[1].reason, ends[1].integrity) == (EndReason.INTEGRITY, IntegrityReason.GUARD_SEAL)
    assert 1 not in tokens, "nothing leaves after the guard has seen it"
    assert ends[2].reason is EndReason.LENGTH
    assert figure(rig.node, "pool_pages|state=poisoned") == 1


def test_what_a_pass_made_while_a_page_was_overwritten_is_not_released(rig):
    reserved = rig.start(max_tokens=8)
    rig.told()
    page = unpack_refs(reserved.pages)[0]
    stranger = LeaseId(DECODE.incarnation, 99)
    rig.model.during = lambda: write_sealed(rig.pool, stranger, page, 0)
    rig.hear()
    tokens, ends = rig.told()
    assert tokens == {}
    assert ends[1].integrity is IntegrityReason.GUARD_SEAL


def test_paranoid_sees_changed_bytes_under_a_whole_seal():
    rig = Rig(level=FenceLevel.PARANOID)
    reserved = rig.start(max_tokens=8)
    rig.told()
    rig.pool.payload(unpack_refs(reserved.pages)[0].page)[0] ^= 1
    rig.run(2)
    assert rig.told()[1][1].integrity is IntegrityReason.SWEEP_DIGEST


def test_paranoid_zeroes_what_becomes_free():
    rig = Rig(level=FenceLevel.PARANOID)
    rig.start(max_tokens=2)
    rig.run()
    assert rig.ledger.count(PageState.FREE) == PAGES + SPARE
    assert not rig.pool.buffer.any()


def test_a_pass_that_fails_ends_its_rows_and_the_node_goes_on(rig):
    rig.start(1, max_tokens=8)
    rig.model.fault = RuntimeError("out of memory")
    rig.hear()
    assert rig.told()[1][1].reason is EndReason.EXECUTOR
    rig.start(2, max_tokens=2)
    rig.run()
    assert rig.told()[1][2].reason is EndReason.LENGTH


def test_a_fault_of_ours_ends_the_process(rig):
    rig.start(max_tokens=8)
    rig.model.fault = KeyError("a bug")
    with pytest.raises(KeyError):
        rig.hear()


def test_a_row_whose_logits_are_no_numbers_fails_alone(rig):
    rig.start(1, max_tokens=8, first_token=10)
    rig.start(2, max_tokens=3, first_token=30)
    rig.model.broken = {14}
    rig.run()
    tokens, ends = rig.told()
    assert tokens[1] == [10, 11, 12, 13, 14]
    assert (ends[1].reason, ends[2].reason) == (EndReason.EXECUTOR, EndReason.LENGTH)


def test_earlier_output_counts_for_penalties_and_not_as_prompt(rig):
    reserved = rig.reserve(penalised=pack_tokens((1, 2)), made=pack_tokens((7, 7, 8)))
    rig.write(reserved)
    rig.hear(rig.closed(reserved))
    row = rig.node._executor.rows[reserved.lease]
    assert row.prompt_tokens == (1, 2)
    assert {token: row.output_counts[token] for token in (7, 8)} == {7: 2, 8: 1}


def test_what_can_never_fit_is_refused_and_forgotten(rig):
    rig.hear(Received(ROUTER, rig.reserve_message(tokens=PAGES * PAGE_TOKENS + 1)))
    (refused,) = rig.plane.take()
    assert isinstance(refused, ReserveRefusedMessage)
    assert refused.refusal.code is RefusalCode.CONTEXT_LENGTH
    assert figure(rig.node, "refusals_total|reason=context_length_exceeded") == 1
    assert len(rig.node._asks) == 0


def test_the_same_reservation_is_answered_by_the_same_lease(rig):
    assert rig.reserve() == rig.reserve()
    assert figure(rig.node, "pool_pages|state=leased") == 3


def test_a_refusal_of_the_writer_reaches_the_router_with_its_numbers(rig):
    reserved = rig.reserve()
    refusal = Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=6, limit_tokens=4)
    rig.hear(Received(PREFILL, ClosedMessage(lease=reserved.lease, refused=refusal)))
    end = rig.told()[1][1]
    assert (end.reason, end.refusal) == (EndReason.REFUSED, refusal)
    assert rig.ledger.count(PageState.FREE) == PAGES + SPARE


def test_an_aborted_row_says_nothing_more_and_its_pages_come_home(rig):
    rig.start(max_tokens=8)
    rig.told()
    rig.hear(Received(ROUTER, AbortMessage(attempt_of(1))))
    rig.run(2)
    tokens, ends = rig.told()
    assert tokens == {}
    assert set(ends) <= {1}
    assert rig.ledger.count(PageState.FREE) == PAGES + SPARE


def test_pages_of_an_aborted_reservation_wait_for_their_writer(rig):
    reserved = rig.reserve()
    rig.hear(Received(ROUTER, AbortMessage(attempt_of(1))))
    assert figure(rig.node, "pool_pages|state=quarantined") > 0
    assert figure(rig.node, "quarantine_oldest_seconds") >= 0
    assert CloseMessage(reserved.lease) in rig.plane.take()
    outcome = closed_message(reserved.lease, Failed(Failure.ABORTED), None, 0)
    rig.hear(Received(PREFILL, outcome))
    assert figure(rig.node, "pool_pages|state=quarantined") == 0


def test_a_lost_writer_is_cut_and_the_proof_frees_its_pages(rig):
    rig.reserve()
    rig.hear(LostPeer(PREFILL))
    assert rig.cutter.asked == [PREFILL]
    assert figure(rig.node, "pool_pages|state=quarantined") > 0
    rig.cutter.answers = [Cut(PREFILL)]
    rig.hear()
    assert figure(rig.node, "pool_pages|state=quarantined") == 0


def test_rows_grow_page_by_page_until_the_pool_is_full_and_the_youngest_gives_way():
    rig = Rig(pages=4)
    for request in (1, 2, 3):
        rig.start(request, tokens=4, max_tokens=12, first_token=10 * request)
    rig.run(30)
    tokens, ends = rig.told()
    assert [ends[request].reason for request in (1, 2, 3)] == [
        EndReason.LENGTH,
        EndReason.LENGTH,
        EndReason.PREEMPTED,
    ]
    assert tokens[1] == list(range(10, 22))
    assert tokens[3] == list(range(30, 30 + len(tokens[3])))
    assert ends[1].next_position == 4 + 12
    assert figure(rig.node, "preemptions_total") == 1
    assert rig.ledger.count(PageState.FREE) == 4 + SPARE


def test_a_message_for_another_role_is_counted_and_changes_nothing(rig):
    message = PrefillMessage(attempt_of(1), DECODE, LeaseId(7, 1), b"", b"", b"", "d", GREEDY)
    rig.hear(Received(ROUTER, message))
    assert rig.plane.senseless == 1
    assert figure(rig.node, "dropped_messages_total|reason=senseless") == 1


def test_a_closed_without_an_outcome_is_counted_and_changes_nothing(rig):
    reserved = rig.reserve()
    rig.hear(Received(PREFILL, ClosedMessage(lease=reserved.lease)))
    assert rig.plane.senseless == 1
    assert rig.told() == ({}, {})


def test_hello_says_what_the_node_has(rig):
    rig.start(max_tokens=8)
    hello = rig.node.hello()
    assert (hello.role, hello.pages_address, hello.pool_tokens) == (Role.DECODE, "shm:there", 32)
    assert hello.control_address == FakePlane.address
    assert hello.free_pages == rig.ledger.free_pages
    assert hello.stats["leases|state=running"] == 1
    assert hello.stats["queue_length|queue=decode_rows"] == 0


def test_a_command_of_another_role_is_our_own_fault(rig):
    with pytest.raises(InvariantError, match="DeliverToken"):
        rig.node.carry_out(commands.DeliverToken(1, 2))
