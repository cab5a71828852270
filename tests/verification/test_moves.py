"""What can happen next is what the world says, and weather where it makes sense."""

import pytest
from tests.verification.walks import WEATHERS, plain_world, scope_of, walk

from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.words import Peer, TimerKind
from kvfence.verification.engine import Engine
from kvfence.verification.moves import old_timers
from kvfence.verification.scopes import COST, Weather
from kvfence.world import happenings as h

OWN = (h.Deliver, h.Land, h.Complete, h.Stop, h.Verify, h.Launch, h.Retire, h.CutDone, h.Destroyed)


def of_kind(moves, *kinds):
    return {repr(move.happening) for move in moves if isinstance(move.happening, kinds)}


def go(engine, state, *happenings):
    for happening in happenings:
        move = next(move for move in engine.enabled(state) if move.happening == happening)
        state, findings = engine.after(state, move)
        assert not findings
    return state


@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("is_wide", [False, True], ids=["one page", "wide"])
def test_what_follows_by_itself_is_what_the_world_says(weather, is_wide):
    scope = scope_of(WEATHERS[weather], is_wide=is_wide)
    engine = Engine(scope, CORRECT)
    for seed in range(4):
        world = plain_world(scope)
        for state, move, _ in walk(engine, 50, seed):
            said = {repr(happening) for happening in world.enabled() if isinstance(happening, OWN)}
            assert of_kind(engine.enabled(state), *OWN) == said
            world.perform(move.happening)


def test_weather_costs_its_budget_and_ends_with_it():
    engine = Engine(scope_of(Weather(crash_prefill=1)), CORRECT)
    start = engine.start()
    crash = h.Crash(Peer("prefill0", 1))
    after = go(engine, start, crash)
    assert start[-1].value[COST["crash_prefill"]] == 1
    assert after[-1].value[COST["crash_prefill"]] == 0
    again = go(engine, after, h.Restart(Peer("prefill0", 1)))
    assert not of_kind(engine.enabled(again), h.Crash)


def test_a_dead_peer_is_taken_for_lost_without_cost_and_a_living_one_is_not():
    prefill, decode = Peer("prefill0", 1), Peer("decode0", 1)
    engine = Engine(scope_of(Weather(crash_prefill=1)), CORRECT)
    start = engine.start()
    assert not of_kind(engine.enabled(start), h.Suspect)
    dead = go(engine, start, h.Crash(prefill))
    assert repr(h.Suspect(decode, prefill)) in of_kind(engine.enabled(dead), h.Suspect)
    known = go(engine, dead, h.Suspect(decode, prefill))
    assert repr(h.Suspect(decode, prefill)) not in of_kind(engine.enabled(known), h.Suspect)


def test_a_writer_that_is_being_cut_gets_no_new_connection():
    prefill, decode = Peer("prefill0", 1), Peer("decode0", 1)
    engine = Engine(scope_of(Weather(suspect=1)), CORRECT)
    suspected = go(engine, engine.start(), h.Suspect(decode, prefill), h.CutDone(decode, prefill))
    assert not of_kind(engine.enabled(suspected), h.Reconnect)


def test_a_connection_that_prefill_destroyed_is_renewed():
    prefill, decode = Peer("prefill0", 1), Peer("decode0", 1)
    engine = Engine(scope_of(Weather(suspect=1)), CORRECT)
    gone = go(engine, engine.start(), h.Suspect(prefill, decode), h.Destroyed(prefill, decode))
    assert of_kind(engine.enabled(gone), h.Reconnect) == {repr(h.Reconnect(prefill, decode))}


def test_a_timer_fires_without_cost_only_when_nothing_else_is_under_way():
    router = Peer("router0", 1)
    engine = Engine(scope_of(Weather(drop=1)), CORRECT)
    asked = go(engine, engine.start(), h.Submit(router, 1))
    assert not of_kind(engine.enabled(asked), h.Fire)
    lost = go(engine, asked, h.Drop(router, Peer("decode0", 1)))
    assert of_kind(engine.enabled(lost), h.Fire)


def test_of_requests_that_are_alike_the_first_comes_first():
    alike = Engine(scope_of(Weather(), alike=True), CORRECT)
    differ = Engine(scope_of(Weather()), CORRECT)
    assert len(of_kind(alike.enabled(alike.start()), h.Submit)) == 1
    assert len(of_kind(differ.enabled(differ.start()), h.Submit)) == 2


def test_a_stopped_node_does_nothing_until_it_goes_on():
    router, decode = Peer("router0", 1), Peer("decode0", 1)
    engine = Engine(scope_of(Weather(pause=1)), CORRECT)
    stopped = go(engine, engine.start(), h.Submit(router, 1), h.Pause(decode))
    assert not of_kind(engine.enabled(stopped), h.Deliver)
    assert of_kind(engine.enabled(go(engine, stopped, h.Resume(decode))), h.Deliver)


def test_an_old_timer_rings_late_for_its_budget_and_changes_nothing():
    engine = Engine(scope_of(Weather(stale_timer=1)), CORRECT)
    router, decode = Peer("router0", 1), Peer("decode0", 1)
    asked = go(engine, engine.start(), h.Submit(router, 1), h.Deliver(router, decode))
    late = [move.happening for move in engine.enabled(asked) if isinstance(move.happening, h.RingLate)]
    assert {ring.node for ring in late} == {router, decode}
    calm = Engine(scope_of(Weather()), CORRECT)
    assert not of_kind(calm.enabled(go(calm, calm.start(), h.Submit(router, 1))), h.RingLate)
    for ring in late:
        rung = go(engine, asked, ring)
        assert rung[:-1] == asked[:-1]
        assert rung[-1].value[COST["stale_timer"]] == 0


def test_a_batch_that_is_under_way_has_no_old_timer():
    scope = scope_of(Weather(), is_wide=True)
    world, batches = plain_world(scope), set()
    world.perform(h.Submit(Peer("router0", 1), 1))
    while (happening := next((one for one in world.enabled() if isinstance(one, OWN)), None)) is not None:
        world.perform(happening)
        under_way = {key[1:] for key in world.writes}
        for core in world.cores.values():
            keys = {timer.key for timer in old_timers(core) if timer.kind is TimerKind.BATCH}
            assert not keys & under_way
            batches |= keys
    assert batches, "one ends before the next"


def test_a_lost_writer_says_hello_all_the_same_and_stays_lost():
    engine = Engine(scope_of(Weather(suspect=1)), CORRECT)
    writer, decode = Peer("prefill0", 1), Peer("decode0", 1)
    hello = h.Announce(writer, decode)
    start = engine.start()
    assert hello not in [move.happening for move in engine.enabled(start)], "it would tell nothing new"
    lost = go(engine, start, h.Suspect(decode, writer))
    heard = go(engine, lost, hello, h.Deliver(writer, decode))
    assert engine.key_of(heard) == engine.key_of(lost)
