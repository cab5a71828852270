"""The router node over a real core: jobs in, messages to the nodes, their answers back to the client.

The test is the decode and the prefill node. Everything runs on one event loop; time is the core's alone,
except where a deadline is what is tested.
"""

import asyncio
import functools
from dataclasses import dataclass, field

import pytest
from tests.serving.node_fakes import DECODE, PREFILL, ROUTER, FakePlane, attempt_of, hello_from

from kvfence.engine.sampling import SamplingParams
from kvfence.protocol import Decisions, RouterConfig, RouterCore, commands, hash_tokens
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.words import (
    End,
    EndReason,
    LeaseId,
    PageRef,
    Peer,
    Refusal,
    RefusalCode,
    Role,
)
from kvfence.serving import control, router_node, router_stream
from kvfence.serving.control import LostPeer, Received
from kvfence.serving.jobs import EndDelta, Job, TokenDelta
from kvfence.serving.router_node import RouterNode
from kvfence.serving.wire import (
    AbortMessage,
    ClosedMessage,
    EndedMessage,
    MadeToken,
    PrefillMessage,
    ReservedMessage,
    ReserveMessage,
    ReserveRefusedMessage,
    TokensMessage,
    pack_refs,
    pack_tokens,
    unpack_refs,
    unpack_tokens,
)

PROMPT = (5, 6, 7, 8, 9)
PROMPT_TOKENS = len(PROMPT)
KEY = b"k" * 32
PAGES = (PageRef(3, 1), PageRef(4, 2))
CONTEXT_TOKENS = 64
GREEDY = SamplingParams(seed=1, temperature=0.0)


def on_a_loop(test):
    """Run the coroutine `test` as a test."""

    @functools.wraps(test)
    def run(*arguments, **facts):
        asyncio.run(test(*arguments, **facts))

    return run


def job(tokens=PROMPT, max_tokens=3, sampling=GREEDY) -> Job:
    return Job("cmpl-1-0", "tenant", "domain", tokens, max_tokens, sampling)


@dataclass
class Rig:
    """The router node with a decode and a prefill node played by the test."""

    limits: dict = field(default_factory=dict)
    has_nodes: bool = True

    def __post_init__(self) -> None:
        self.plane = FakePlane()
        core = RouterCore(
            ROUTER, RouterConfig(context_tokens=CONTEXT_TOKENS, page_tokens=4, **self.limits), Decisions()
        )
        self.node = RouterNode(core, loop=asyncio.get_running_loop(), started_at=0.0)
        self.node.attach(self.plane)
        if self.has_nodes:
            self.greet()

    def greet(self, *, pool_tokens=CONTEXT_TOKENS) -> None:
        for peer, role in ((PREFILL, Role.PREFILL), (DECODE, Role.DECODE)):
            self.hear(hello_from(peer, role, pool_tokens=pool_tokens, free_pages=16, facts={"threads": 1}))

    def hear(self, inbound) -> None:
        self.node._on_inbound(inbound)

    def decode_says(self, body) -> None:
        self.hear(Received(DECODE, body))

    def reserved(self, request=1, number=1) -> LeaseId:
        lease = LeaseId(DECODE.incarnation, request * 10 + number)
        self.decode_says(ReservedMessage(attempt_of(request, number), lease, pack_refs(PAGES), KEY))
        return lease

    def tokens(self, *tokens, position=PROMPT_TOKENS, request=1, number=1) -> None:
        attempt = attempt_of(request, number)
        made = [MadeToken(attempt, token, position + index) for index, token in enumerate(tokens)]
        self.decode_says(TokensMessage(tuple(made)))

    def ended(self, end, request=1, number=1, cached_tokens=0) -> None:
        self.decode_says(EndedMessage(attempt_of(request, number), end, cached_tokens))

    def submit(self, *jobs):
        streams = self.node.submit(jobs or (job(),))
        return streams if len(streams) > 1 else streams[0]


async def read(stream):
    """Every delta of a stream that has ended: tokens, and the end."""
    async with asyncio.timeout(10):
        *tokens, end = [delta async for delta in stream]
    assert all(isinstance(delta, TokenDelta) for delta in tokens)
    return [delta.token for delta in tokens], end


LENGTH = End(EndReason.LENGTH, next_position=len(PROMPT) + 3)


@on_a_loop
async def test_a_job_is_reserved_handed_on_answered_and_over():
    rig = Rig()
    stream = rig.submit()
    assert not rig.node.idle.is_set()
    assert rig.plane.sent == [
        (DECODE, ReserveMessage(attempt_of(1), PREFILL, 5, 3, hash_tokens(PROMPT), GREEDY))
    ]
    rig.plane.take()
    lease = rig.reserved()
    ((peer, message),) = rig.plane.sent
    assert (peer, message.attempt, message.decode, message.lease) == (PREFILL, attempt_of(1), DECODE, lease)
    assert (unpack_refs(message.pages), message.key, message.domain) == (PAGES, KEY, "domain")
    assert (unpack_tokens(message.tokens), message.made_tokens) == (PROMPT, 0)
    rig.tokens(10, 11)
    rig.tokens(12, position=7)
    rig.ended(LENGTH, cached_tokens=4)
    assert await read(stream) == ([10, 11, 12], EndDelta(LENGTH, 5, 3, 4))
    assert rig.node.idle.is_set()


@on_a_loop
async def test_prompt_ids_travel_to_decode_only_where_a_penalty_counts_them():
    rig = Rig()
    rig.submit(job(sampling=SamplingParams(seed=1, repetition_penalty=1.1)))
    assert rig.plane.take(ReserveMessage)[0].penalised == pack_tokens(PROMPT)
    rig.submit()
    assert rig.plane.take(ReserveMessage)[0].penalised == b""


@on_a_loop
async def test_without_nodes_a_job_is_refused_and_counted():
    rig = Rig(has_nodes=False)
    assert rig.node.limit_tokens is None
    tokens, end = await read(rig.submit())
    assert (tokens, end.end.refusal.code) == ([], RefusalCode.UNAVAILABLE)
    assert rig.node.figures()["router"][1]["refusals_total|reason=unavailable"] == 1
    assert rig.node.idle.is_set()


@on_a_loop
async def test_the_smallest_pool_is_the_limit():
    rig = Rig(has_nodes=False)
    rig.greet(pool_tokens=8)
    assert rig.node.limit_tokens == 8
    _, end = await read(rig.submit(job(max_tokens=4)))
    assert (end.end.refusal.needed_tokens, end.end.refusal.limit_tokens) == (9, 8)
    assert rig.plane.sent == []


@on_a_loop
async def test_choices_are_admitted_together_or_not_at_all():
    rig = Rig(limits={"requests_max": 2})
    for stream in rig.submit(job(), job(), job()):
        assert (await read(stream))[1].end.refusal.code is RefusalCode.BUSY
    assert rig.plane.sent == []
    assert len(rig.submit(job(), job())) == 2
    assert len(rig.plane.take(ReserveMessage)) == 2


@on_a_loop
async def test_a_refusal_of_decode_that_is_final_ends_the_job():
    rig = Rig()
    stream = rig.submit()
    refusal = Refusal(RefusalCode.CONTEXT_LENGTH, needed_tokens=8, limit_tokens=4)
    rig.decode_says(ReserveRefusedMessage(attempt_of(1), refusal))
    assert (await read(stream))[1].end == End(EndReason.REFUSED, refusal=refusal)


@on_a_loop
async def test_a_client_that_leaves_aborts_its_attempt_and_still_gets_an_end():
    rig = Rig()
    stream = rig.submit()
    rig.reserved()
    rig.plane.take()
    stream.cancel()
    assert {peer for peer, _ in rig.plane.sent} == {DECODE, PREFILL}
    assert set(rig.plane.take()) == {AbortMessage(attempt_of(1))}
    assert (await read(stream))[1].end.reason is EndReason.CLIENT_GONE
    rig.tokens(10)
    rig.ended(End(EndReason.CLIENT_GONE))
    assert rig.node.idle.is_set()


@on_a_loop
async def test_tokens_of_another_attempt_or_place_are_not_delivered():
    rig = Rig()
    stream = rig.submit()
    rig.reserved()
    rig.tokens(99, number=2)
    rig.tokens(10)
    rig.tokens(11, position=7)
    rig.ended(LENGTH)
    tokens, end = await read(stream)
    assert tokens == [10]
    assert end.end.reason not in (EndReason.STOP, EndReason.LENGTH), "a lost token is no cheerful end"


@on_a_loop
async def test_a_preempted_job_goes_on_as_a_new_attempt_with_what_was_made():
    rig = Rig()
    stream = rig.submit()
    rig.reserved()
    rig.tokens(10)
    rig.plane.take()
    rig.ended(End(EndReason.PREEMPTED))
    (again,) = rig.plane.take(ReserveMessage)
    assert (again.attempt, again.tokens, again.max_tokens) == (attempt_of(1, 2), 6, 2)
    assert again.token_hash == hash_tokens((*PROMPT, 10))
    assert unpack_tokens(again.made) == (10,)
    rig.reserved(number=2)
    (handed,) = rig.plane.take(PrefillMessage)
    assert (unpack_tokens(handed.tokens), handed.made_tokens) == ((*PROMPT, 10), 1)
    rig.tokens(11, 12, position=6, number=2)
    rig.ended(LENGTH, number=2)
    assert (await read(stream))[0] == [10, 11, 12]


@on_a_loop
async def test_a_slow_client_is_given_up(monkeypatch):
    monkeypatch.setattr(router_stream, "CLIENT_BUFFER_DELTAS_MAX", 2)
    rig = Rig()
    stream = rig.submit()
    rig.reserved()
    rig.tokens(10, 11, 12)
    assert AbortMessage(attempt_of(1)) in rig.plane.take()
    tokens, end = await read(stream)
    assert (tokens, end.end.reason) == ([10, 11], EndReason.CLIENT_GONE)


@on_a_loop
async def test_a_node_that_is_lost_is_no_longer_shown_and_its_job_ends_or_waits():
    rig = Rig()
    stream = rig.submit()
    rig.reserved()
    rig.tokens(10)
    rig.hear(LostPeer(DECODE))
    assert (await read(stream))[1].end.reason is EndReason.PEER_LOST
    assert set(rig.node.hellos) == {PREFILL.node}
    assert rig.node.limit_tokens is None


@on_a_loop
async def test_a_job_that_finds_no_room_in_time_is_refused():
    rig = Rig(limits={"queue_ms": 5})
    stream = rig.submit()
    rig.decode_says(ReserveRefusedMessage(attempt_of(1), Refusal(RefusalCode.BUSY)))
    _, end = await read(stream)
    assert end.end.refusal.code is RefusalCode.DEADLINE


@on_a_loop
async def test_draining_refuses_what_is_new_and_finishes_what_is_old():
    rig = Rig()
    old = rig.submit()
    rig.node.drain()
    _, end = await read(rig.submit())
    assert end.end.refusal.code is RefusalCode.DRAINING
    rig.reserved()
    rig.tokens(10, 11, 12)
    rig.ended(LENGTH)
    assert (await read(old))[0] == [10, 11, 12]
    assert rig.node.idle.is_set()


@on_a_loop
async def test_messages_that_make_no_sense_are_counted_and_change_nothing():
    rig = Rig()
    rig.decode_says(ClosedMessage(lease=LeaseId(7, 1)))
    rig.decode_says(ReservedMessage(attempt_of(1), LeaseId(7, 1), b"123", KEY))
    assert rig.plane.senseless == 2
    assert rig.node.figures()["router"][1]["dropped_messages_total|reason=senseless"] == 2


@on_a_loop
async def test_what_the_planes_thread_delivers_is_heard_on_the_loop():
    rig = Rig(has_nodes=False)
    assert rig.node.deliver(hello_from(DECODE, Role.DECODE, pool_tokens=8))
    assert rig.node.hellos == {}
    await asyncio.sleep(0)
    assert rig.node.hellos[DECODE.node][0] == DECODE


@on_a_loop
async def test_the_inbox_is_bounded_and_a_loss_is_always_heard(monkeypatch):
    monkeypatch.setattr(router_node, "INBOX_MESSAGES_MAX", 2)
    rig = Rig(has_nodes=False)
    hello = hello_from(DECODE, Role.DECODE, pool_tokens=8)
    assert [rig.node.deliver(hello) for _ in range(3)] == [True, True, False]
    assert rig.node.deliver(LostPeer(DECODE))
    await asyncio.sleep(0)
    assert rig.node.hellos == {}
    assert rig.node.deliver(hello)


@on_a_loop
async def test_what_is_shown_of_the_nodes_is_what_they_said():
    rig = Rig()
    rig.hear(hello_from(DECODE, Role.DECODE, pool_tokens=8, stats={"pool_pages|state=free": 3.0}))
    figures = rig.node.figures()
    assert figures[DECODE.node] == ("decode", {"pool_pages|state=free": 3.0})
    assert figures["router"][1]["queue_length|queue=admission"] == 0
    info = rig.node.server_info()
    assert info["largest_request_tokens"] == CONTEXT_TOKENS, "a pool's size does not change with a hello"
    assert [(node["name"], node["role"]) for node in info["nodes"]] == [
        ("decode-0", "decode"),
        ("prefill-0", "prefill"),
    ]
    assert info["nodes"][1]["threads"] == 1


@on_a_loop
async def test_a_restarted_node_is_shown_under_its_new_incarnation():
    rig = Rig()
    newer = Peer(DECODE.node, DECODE.incarnation + 1)
    rig.hear(hello_from(newer, Role.DECODE, pool_tokens=16))
    assert rig.node.server_info()["nodes"][0]["incarnation"] == newer.incarnation
    assert rig.node.limit_tokens == 16


def test_both_kinds_of_inbox_have_one_bound():
    assert router_node.INBOX_MESSAGES_MAX is control.INBOX_MESSAGES_MAX


@pytest.mark.parametrize("command", [commands.StampPages(LeaseId(7, 1), ())])
@on_a_loop
async def test_a_command_of_another_role_is_a_fault_of_ours(command):
    with pytest.raises(InvariantError, match="StampPages"):
        Rig().node._carry_out(command)
