"""Each law that a core can be asked about, seen broken once; the joined rig shows them silent everywhere."""

from dataclasses import replace

import pytest
from tests.protocol.rig import Joined
from tests.protocol.stages import (
    computing,
    prefill_closing,
    prefilling,
    queued,
    reserved,
    running,
    sending,
    streaming,
    verifying,
    waiting,
)
from tests.protocol.test_prefill import SHARED, Shelf

from kvfence.protocol import DecodeState, PrefillState
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.laws import LAWS, check_laws
from kvfence.protocol.ledger import PageState
from kvfence.protocol.words import AttemptId, End, EndReason, LeaseId, PageRef


def reading_prefix():
    """Prefill with a lease that reads pinned prefix pages."""
    rig = Joined(prefix=Shelf)
    rig.submit(max_tokens=2, tokens=SHARED)
    rig.run()
    rig.hold("write")
    rig.submit(max_tokens=2, tokens=SHARED)
    return rig.run()


def d(rig):
    return rig.lease("d0")


def p(rig):
    return rig.lease("p0")


def set_state(ledger, page, state):
    ledger.state[page] = state


BREAKS = [
    ("ownership", "d0", reserved, lambda r: r.decode.ledger.owner.__setitem__(d(r).tail.page, 99)),
    ("ownership", "d0", running, lambda r: d(r).grown.append(PageRef(0, 77))),
    ("ownership", "d0", running, lambda r: d(r).grown.append(d(r).tail)),
    ("ownership", "p0", computing, lambda r: r.prefill.ledger.epoch.__setitem__(0, 9)),
    ("written", "d0", running, lambda r: set_state(r.decode.ledger, d(r).tail.page, PageState.RESERVED)),
    ("written", "p0", computing, lambda r: setattr(p(r), "posted_pages", 4)),
    ("contract", "d0", verifying, lambda r: setattr(d(r), "writer_is_quiet", False)),
    ("contract", "d0", running, lambda r: setattr(d(r), "manifest", None)),
    ("contract", "d0", running, lambda r: setattr(d(r), "token_hash", b"other")),
    ("contract", "d0", verifying, lambda r: setattr(d(r), "manifest", replace(d(r).manifest, pages=9))),
    ("quiet before free", "d0", running, lambda r: r.decode.ledger.owner.__setitem__(15, 4)),
    ("quiet before free", "d0", running, lambda r: set_state(r.decode.ledger, d(r).tail.page, 0)),
    ("quiet before free", "d0", running, lambda r: setattr(d(r), "steps", 1)),
    ("quiet before free", "d0", running, lambda r: setattr(d(r), "steps", -1)),
    ("quiet before free", "p0", computing, lambda r: setattr(p(r), "steps", 1)),
    ("quiet before free", "p0", prefill_closing, lambda r: setattr(p(r), "was_said", True)),
    ("rejection is terminal", "d0", running, lambda r: setattr(d(r), "end", End(EndReason.STOP))),
    ("rejection is terminal", "d0", running, lambda r: r.decode.over.__setitem__(d(r).attempt, None)),
    ("rejection is terminal", "d0", waiting, lambda r: r.decode.waiting.append(d(r).lease)),
    ("rejection is terminal", "p0", computing, lambda r: setattr(p(r), "state", PrefillState.CLOSING)),
    (
        "rejection is terminal",
        "p0",
        sending,
        lambda r: r.prefill.memory[r.peer("d0")].outcomes.__setitem__(p(r).lease.sequence, None),
    ),
    ("rejection is terminal", "r", queued, lambda r: r.router.queue.clear()),
    ("capacity", "r", prefilling, lambda r: setattr(r.router.requests[1], "max_tokens", 999)),
    ("capacity", "p0", computing, lambda r: setattr(p(r), "tokens", (0,) * 999)),
    ("capacity", "d0", reserved, lambda r: setattr(d(r), "tokens", 999)),
    ("honest answers", "r", streaming, lambda r: setattr(r.router.requests[1], "delivered_tokens", 10)),
    ("sharing by domain", "p0", reading_prefix, lambda r: r.prefill.ledger.pins.__setitem__(0, 7)),
    (
        "sharing by domain",
        "p0",
        reading_prefix,
        lambda r: set_state(r.prefill.ledger, p(r).own_pages[-1].page, PageState.CACHED),
    ),
    ("ids are ours", "r", streaming, lambda r: setattr(r.router.requests[1], "request", 2)),
    ("ids are ours", "d0", reserved, lambda r: setattr(d(r), "lease", LeaseId(3, 8))),
    ("ids are ours", "d0", reserved, lambda r: r.decode.attempts.__setitem__(AttemptId(1, 9, 9), d(r).lease)),
    ("incarnation", "d0", reserved, lambda r: r.decode.peers.lose(r.peer("p0"))),
    (
        "incarnation",
        "r",
        streaming,
        lambda r: r.router.peers.greet(replace(r.peer("d0"), incarnation=9), "x"),
    ),
    ("incarnation", "p0", computing, lambda r: setattr(p(r), "decode", replace(p(r).decode, incarnation=9))),
    ("everything comes home", "d0", reserved, lambda r: r.decode.writers.clear()),
    ("everything comes home", "d0", running, lambda r: r.decode.ledger.lease(1, 99)),
    ("everything comes home", "p0", computing, lambda r: r.prefill.ledger.lease(1, 99)),
    ("noninterference", "d0", reserved, lambda r: setattr(d(r), "tokens", (1, 2))),
]


@pytest.mark.parametrize(("law", "name", "stage", "damage"), BREAKS)
def test_a_broken_law_is_named(law, name, stage, damage):
    rig = stage()
    check = next(entry.check for entry in LAWS if entry.name.lower() == law)
    check(rig.core(name))
    damage(rig)
    with pytest.raises(InvariantError, match=f"^{law}"):
        check(rig.core(name))


def test_all_twelve_are_there_in_order():
    assert [law.number for law in LAWS] == list(range(1, 13))
    assert {law.name.lower() for law in LAWS} == {law for law, *_ in BREAKS}
    assert all(law.check.__doc__ for law in LAWS)


def test_miscounted_pages_are_seen():
    rig = running()
    rig.decode.ledger._counts[PageState.FREE] += 1
    with pytest.raises(InvariantError, match="miscounted"):
        check_laws(rig.decode)


def test_a_lease_of_another_incarnation_is_seen():
    rig = running()
    record = d(rig)
    record.lease = LeaseId(99, 1)
    with pytest.raises(InvariantError):
        check_laws(rig.decode)
    assert record.state is DecodeState.RUNNING
