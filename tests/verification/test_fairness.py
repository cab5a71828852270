"""Classes of happenings are the same in states that differ in names, and deadlines end rounds."""

import pytest
from tests.verification.walks import scope_of

from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.words import LeaseId, Peer, Timer, TimerKind
from kvfence.verification import SCOPES, explorer, fairness, find_stranded
from kvfence.verification.engine import Engine
from kvfence.verification.fairness import class_of, is_owed
from kvfence.verification.scopes import Weather
from kvfence.world import happenings as h

PREFILL, DECODE, ROUTER = Peer("prefill0", 1), Peer("decode0", 1), Peer("router0", 1)


def test_a_class_has_processes_and_no_names_that_change():
    assert class_of(h.Land(PREFILL, LeaseId(1, 1), 1)) == class_of(h.Land(PREFILL, LeaseId(1, 9), 4))
    assert class_of(h.Submit(ROUTER, 1)) == class_of(h.Submit(ROUTER, 2))
    assert class_of(h.Deliver(ROUTER, DECODE)) != class_of(h.Deliver(ROUTER, PREFILL))
    lease, retry = (Timer(kind, LeaseId(1, 1)) for kind in (TimerKind.LEASE, TimerKind.CLOSE_RETRY))
    assert class_of(h.Fire(DECODE, lease)) != class_of(h.Fire(DECODE, retry))


def test_nobody_owes_what_clients_and_operators_do():
    assert not is_owed(class_of(h.Submit(ROUTER, 1)))
    assert not is_owed(class_of(h.Restart(PREFILL)))
    assert is_owed(class_of(h.Deliver(ROUTER, DECODE)))


WEATHERS = (Weather(leave=1, drop=1), Weather(crash_prefill=1), Weather(pause=1), Weather(suspect=1))


@pytest.mark.parametrize("weather", WEATHERS, ids=lambda weather: "·".join(map(str, weather.counts())))
def test_states_of_one_key_have_the_same_classes(weather):
    """So happenings may be compared across states, though names were taken away."""
    engine = Engine(scope_of(weather, alike=True), CORRECT)
    start = engine.start()
    seen, queue, compared = {engine.key_of(start): start}, [start], 0
    for state in queue:
        for move in engine.enabled(state):
            new, _ = engine.after(state, move)
            known = seen.setdefault(engine.key_of(new), new)
            if known is new:
                queue.append(new)
            elif known != new:
                compared += 1
                assert classes(engine, known) == classes(engine, new)
        if len(seen) > 2_000:
            break
    assert compared > 0


def classes(engine, state):
    """With the keys of where they lead: what `graph` looks at."""
    moves = engine.enabled(state)
    return sorted((class_of(m.happening), engine.key_of(engine.after(state, m)[0])) for m in moves)


def test_a_round_of_hellos_is_ended_by_a_deadline():
    homing = find_stranded(SCOPES["smoke"], CORRECT)
    assert homing.timed > 0
    assert homing.livelock is None


def test_timers_that_are_set_anew_all_the_way_are_no_promise(monkeypatch):
    true, times = fairness._pending, iter(range(10**9))
    monkeypatch.setattr(
        fairness,
        "_pending",
        lambda world: {kind: frozenset([next(times)]) for kind in true(world)},
    )
    homing = find_stranded(SCOPES["smoke"], CORRECT)
    assert (homing.timed, homing.kept) == (0, homing.rounds - homing.left)
    assert homing.livelock is not None
    assert explorer.draw(homing.livelock, CORRECT).count("Hello") > 0
