"""Steps for the tests of one check: what a node says it was told, the rows it took, what it did."""

from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.verification.conformance_steps import Place, RowTaken, Step

ROUTER, PREFILL, DECODE = Peer("router", 1), Peer("prefill-0", 2), Peer("decode-0", 3)
PLACE = Place("trace", 1)


def lease(sequence=1):
    return LeaseId(DECODE.incarnation, sequence)


def refs(*pages, epoch=1):
    return tuple(PageRef(page, epoch) for page in pages)


def row(key, state, fact, next_state, action):
    return RowTaken(key, state, fact, next_state, action)


def step(event, *said, rows=(), peer=DECODE, place=PLACE, published=None):
    return Step(place, peer, 1, event, tuple(rows), said, [], [], published or {})


def take(check, *steps):
    """What the check finds in the last of these steps; nothing in those before it."""
    *before, last = steps
    for one in before:
        assert list(check.take(one)) == []
    return [(kind.value, why) for kind, why in check.take(last)]
