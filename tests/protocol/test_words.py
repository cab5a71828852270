"""The small parts: token hash, decisions, configs, peers, closed memory, tables, steps, errors."""

from array import array
from hashlib import sha256

import pytest

from kvfence.protocol import (
    CORRECT,
    DECODE,
    Decisions,
    DecodeConfig,
    DecodeFact,
    DecodeState,
    Expectation,
    NoPrefix,
    PrefillConfig,
    RouterConfig,
    events,
    hash_tokens,
    pages_for,
)
from kvfence.protocol.errors import InvariantError, OperatorError, unreachable
from kvfence.protocol.machine import Machine, StepBook
from kvfence.protocol.memory import ClosedMemory
from kvfence.protocol.peers import Greeting, PeerBook
from kvfence.protocol.words import (
    Failed,
    Failure,
    LeaseId,
    Manifest,
    Peer,
    Refusal,
    RefusalCode,
    Role,
)

D1, D2, D3 = (Peer("d", n) for n in (1, 2, 3))


# ---------------------------------------------------------------- tokens
def test_token_hash_is_sha256_of_little_endian_u32():
    tokens = (0, 1, 258, 4_294_967_295)
    expected = sha256(b"".join(t.to_bytes(4, "little") for t in tokens)).digest()
    assert hash_tokens(tokens) == expected == hash_tokens(array("I", tokens))
    assert hash_tokens((1, 2)) != hash_tokens((2, 1))
    with pytest.raises(OverflowError):
        hash_tokens((4_294_967_296,))


# ---------------------------------------------------------------- decisions
def test_admission_around_the_limit():
    admits = Decisions().admits
    assert [admits(n, 32) for n in (31, 32, 33)] == [True, True, False]


def test_a_prompt_is_whole_or_refused():
    fit = Decisions().fit_prompt
    assert fit((1, 2, 3), 3) == (1, 2, 3)
    assert fit((1, 2, 3), 2) == Refusal(RefusalCode.CONTEXT_LENGTH, 3, 2)


def test_manifest_fault_both_ways():
    lease = LeaseId(1, 1)
    expected = Expectation(lease, D1, 5, 2, b"h")
    good = Manifest(lease, D1, 5, 2, b"h", 9, 5)
    assert Decisions().manifest_fault(good, expected) is None
    other = Manifest(lease, D2, 5, 2, b"h", 9, 5)
    assert Decisions().manifest_fault(other, expected) is not None


def test_quiet_before_free_both_ways():
    d = Decisions()
    assert d.may_free(0, writer_is_quiet=True)
    assert not d.may_free(1, writer_is_quiet=True)
    assert not d.may_free(0, writer_is_quiet=False)
    assert d.posts_are_quiet(0, 0)
    assert not d.posts_are_quiet(1, 0)
    assert not d.posts_are_quiet(0, 1)
    assert d.sources_are_quiet(0, 0)
    assert not d.sources_are_quiet(1, 0)
    assert not d.sources_are_quiet(0, 1)


def test_nothing_but_proof_is_quiet():
    d = Decisions()
    hopes = (d.deadline_is_quiet, d.lost_is_quiet, d.abort_is_quiet, d.unknown_cut_is_quiet)
    assert not any(hope() for hope in (*hopes, d.illegal_is_quiet, d.failed_write_counts))


def test_the_other_decisions_both_ways():
    d = Decisions()
    assert d.accepts_token(5, 5, is_current_attempt=True)
    assert not d.accepts_token(6, 5, is_current_attempt=True)
    assert not d.accepts_token(5, 5, is_current_attempt=False)
    assert d.is_written(3, 3, 0)
    assert not d.is_written(2, 3, 0)
    assert not d.is_written(3, 3, 1)
    assert d.copies_tail(5, 4)
    assert not d.copies_tail(8, 4)
    assert d.speaks_for(D1, D1)
    assert not d.speaks_for(D1, D2)
    assert d.publishes(sealed=True)
    assert not d.publishes(sealed=False)
    assert d.refuses_late_prefill(lease_is_closed=True)
    assert not d.refuses_late_prefill(lease_is_closed=False)
    assert [d.fits_node(n, 32) for n in (32, 33)] == [True, False]
    assert [d.fits_pool(n, 32) for n in (32, 33)] == [True, False]
    assert (d.advertised_tokens(64, 32), d.advertised_tokens(32, 64)) == (32, 32)
    assert d.refuses_after_abort(attempt_is_over=True)
    assert not d.refuses_after_abort(attempt_is_over=False)


def test_what_has_one_right_answer():
    d = CORRECT
    assert d.needed_tokens(20, 4) == 24
    assert d.addressee(3, iter((3, 4))) == 3
    assert d.owed_pages(reserved=3, computed=1) == 3
    assert d.asked_writer(D1, D2) == D1
    assert d.first_token(7, (7, 8)) == 7
    assert d.lease_number(5, (4,)) == 5
    assert d.padding_page(9) == 9
    assert [d.table_row(row, 3) for row in range(3)] == [0, 1, 2]
    assert d.sharing_domain("a") == d.prefix_domain("a") == "a"
    assert d.prefix_digest(b"x") == sha256(b"x").digest()
    checks = (d.chains_prefix, d.compares_prefix, d.zeroes_unused_slots, d.zeroes_added_pages)
    assert all(check() for check in (*checks, d.asks_again, d.guards_steps))
    assert not d.adopts_old_pool()


# ---------------------------------------------------------------- configs
@pytest.mark.parametrize(
    "make",
    [
        lambda: RouterConfig(context_tokens=0),
        lambda: PrefillConfig(page_bytes=0),
        lambda: DecodeConfig(lease_ms=0),
    ],
)
def test_a_bound_of_nothing_is_the_operators_error(make):
    with pytest.raises(OperatorError, match="raise it"):
        make()


def test_a_batch_has_at_least_one_page():
    assert PrefillConfig(page_bytes=100, batch_bytes=10).batch_pages == 1
    assert PrefillConfig(page_bytes=100, batch_bytes=350).batch_pages == 3


def test_pages_for():
    assert [pages_for(n, 16) for n in (0, 1, 16, 17)] == [0, 1, 1, 2]


# ---------------------------------------------------------------- peers
def test_only_the_newest_incarnation_is_known():
    book = PeerBook(peers_max=1)
    assert book.greet(D2, Role.DECODE) == (Greeting.NEW, None)
    assert book.greet(D2, Role.DECODE) == (Greeting.AGAIN, None)
    assert book.greet(D1, Role.DECODE) == (Greeting.STALE, None)
    assert book.greet(D2, Role.PREFILL) == (Greeting.STALE, None)
    assert book.greet(D3, Role.DECODE) == (Greeting.NEWER, D2)
    assert book.greet(Peer("e", 1), Role.DECODE) == (Greeting.FULL, None)
    assert not book.is_alive(D2, Role.DECODE)
    assert book.is_alive(D3, Role.DECODE)
    assert not book.is_alive(D3, Role.PREFILL)
    assert book.alive(Role.DECODE) == [D3]


def test_lost_and_back():
    book = PeerBook(peers_max=1)
    assert not book.lose(D1)
    book.greet(D1, Role.DECODE)
    assert book.lose(D1)
    assert not book.lose(D1)
    assert book.newest("d") == D1
    assert book.newest("e") is None
    assert book.greet(D1, Role.DECODE) == (Greeting.BACK, None)


# ---------------------------------------------------------------- closed memory
def test_memory_says_the_same_again_and_forgets_below_the_floor():
    memory = ClosedMemory(closed_max=8)
    outcome = Failed(Failure.EXECUTOR)
    memory.record(3, outcome)
    memory.record(4, None)
    assert memory.outcome(3) == outcome
    assert memory.silent() == [4]
    assert memory.is_closed(3)
    assert not memory.is_closed(5)
    memory.rise(5)
    assert memory.is_closed(4)
    assert memory.outcome(3) is None
    memory.record(2, outcome)
    assert memory.outcomes == {}


def test_a_full_memory_refuses_more_rather_than_less():
    memory = ClosedMemory(closed_max=2)
    for sequence in (5, 6, 7):
        memory.record(sequence, Failed(Failure.ABORTED))
    assert len(memory.outcomes) == 2
    assert memory.floor == 6
    assert all(memory.is_closed(sequence) for sequence in (1, 5, 6, 7))
    assert not memory.is_closed(8)


# ---------------------------------------------------------------- the rest
def test_a_missing_row_fails_closed_but_in_closing():
    missing = DecodeFact.CLOSED_STRAY
    assert DECODE.find(DecodeState.RUNNING, missing) == (DecodeState.CLOSING, "fail_closed")
    assert DECODE.find(DecodeState.CLOSING, missing) == (DecodeState.CLOSING, "ignore")


def test_steps_are_bounded_and_named_once():
    book = StepBook(steps_max=1)
    lease = LeaseId(1, 1)
    assert list(book.launch(events.StepLaunched(1, (lease, lease)))) == [lease]
    assert book.of(lease) == {1}
    with pytest.raises(InvariantError, match="launched twice"):
        book.launch(events.StepLaunched(1, ()))
    with pytest.raises(InvariantError, match="in flight"):
        book.launch(events.StepLaunched(2, ()))
    assert len(book) == 1
    assert list(book.retire(events.StepRetired(1))) == [lease]
    assert list(book.retire(events.StepRetired(1))) == []


def test_a_bare_machine_settles_nothing():
    with pytest.raises(NotImplementedError):
        Machine(D1, Decisions(), 1)._settle()


def test_the_null_index():
    none = NoPrefix()
    assert (none.match("t", (1,)), none.publish("t", (1,), ()), none.evict(3)) == ((), (), ())
    none.forget(0)


def test_unreachable_is_an_invariant():
    with pytest.raises(InvariantError, match="here"):
        unreachable("here")
