"""Asks live as long as their attempt, and no longer."""

from kvfence.engine.sampling import SamplingParams
from kvfence.protocol.words import AttemptId, LeaseId, Peer
from kvfence.serving.asks import AskBook
from kvfence.serving.wire import ReserveMessage

ROUTER, WRITER = Peer("router", 1), Peer("prefill-0", 2)
LEASE = LeaseId(3, 1)


def ask(number=1, tokens=10):
    return ReserveMessage(AttemptId(1, 7, number), WRITER, tokens, 5, b"h", SamplingParams(seed=1))


def test_an_ask_is_found_by_its_lease_until_it_ends():
    book = AskBook()
    book.hear(ROUTER, ask())
    book.bind(LEASE, ask().attempt)
    book.settle(ask().attempt)
    assert book.of(LEASE).message == ask()
    assert book.end(ask().attempt).router == ROUTER
    assert book.of(LEASE) is None
    assert len(book) == 0


def test_an_ask_without_a_lease_is_not_kept():
    book = AskBook()
    book.hear(ROUTER, ask())
    book.settle(ask().attempt)
    assert len(book) == 0
    assert book.end(ask().attempt) is None


def test_a_repeated_ask_changes_nothing():
    book = AskBook()
    book.hear(ROUTER, ask(tokens=10))
    book.bind(LEASE, ask().attempt)
    book.hear(ROUTER, ask(tokens=11))
    book.settle(ask().attempt)
    assert book.of(LEASE).message.tokens == 10


def test_other_attempts_stay():
    book = AskBook()
    other = LeaseId(3, 2)
    for lease, number in ((LEASE, 1), (other, 2)):
        book.hear(ROUTER, ask(number))
        book.bind(lease, ask(number).attempt)
    book.end(ask(1).attempt)
    assert book.of(other).message == ask(2)
