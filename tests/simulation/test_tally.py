"""Tallies add up, keep the shortest failures, and say how many seeds it takes."""

from kvfence.protocol.words import End, EndReason, Peer, Refusal, RefusalCode
from kvfence.simulation.outcome import Outcome, ends_of
from kvfence.simulation.probes import PROBES
from kvfence.simulation.tally import FAILURES_MAX, Tally, seeds_to_find
from kvfence.world import Client, Finding, Kind
from kvfence.world import happenings as h

LATE = Finding(Kind.LATE_WRITE, Peer("decode0", 1), "late")


def an_outcome(seed: int, findings=(), happenings: int = 10) -> Outcome:
    return Outcome(
        seed=seed,
        findings=findings,
        virtual_us=36_000_000,
        happenings=happenings,
        requests=2,
        ends={"length": 2},
        probes={PROBES[0]: 1},
        rows=(("DecodeState", "ABSENT", "ABORT"),),
        catches={"seal": 1} if findings else {},
        script=((0, h.Crash(Peer("decode0", 1))),) * happenings if findings else (),
    )


def test_parts_add_up_to_the_whole():
    outcomes = [an_outcome(seed, (LATE,) if seed == 3 else ()) for seed in range(6)]
    whole, left, right = Tally(), Tally(), Tally()
    for outcome in outcomes:
        whole.add(outcome)
        (left if outcome.seed < 3 else right).add(outcome)
    left.merge(right)
    assert left == whole
    assert (whole.seeds, whole.requests, whole.found, whole.kinds) == (6, 12, [3], {"late write": 1})
    assert whole.hours_a_minute(60) == 0.06
    assert PROBES[0] not in whole.silent_probes
    assert PROBES[1] in whole.silent_probes


def test_the_shortest_failures_are_kept():
    tally = Tally()
    for seed in range(FAILURES_MAX + 5):
        tally.add(an_outcome(seed, (LATE,), happenings=100 - seed))
    assert len(tally.failures) == FAILURES_MAX
    assert tally.failures[0].seed == FAILURES_MAX + 4


def test_seeds_to_find_is_the_median_wait():
    assert seeds_to_find([], 0) is None
    assert seeds_to_find([0, 1, 2], 0) == 1
    assert seeds_to_find([9, 29, 30], 0) == 10


def test_ends_are_counted_by_their_reason():
    refused = End(EndReason.REFUSED, refusal=Refusal(RefusalCode.BUSY))
    clients = [Client(1, End(EndReason.STOP)), Client(0, refused), Client(is_lost=True), Client()]
    assert ends_of(clients) == {"stop": 1, "refused: busy": 1, "router died": 1, "never ended": 1}
