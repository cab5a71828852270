"""Probes see what they are named after, and nothing in a run where nothing happens."""

from kvfence.protocol import CORRECT
from kvfence.protocol import DECODE as DECODE_TABLE
from kvfence.protocol import PREFILL as PREFILL_TABLE
from kvfence.protocol import ROUTER as ROUTER_TABLE
from kvfence.protocol.words import LeaseId
from kvfence.simulation.probes import POISON, PROBES, ROWS, SIGHTS, Watcher, sights
from kvfence.world import Ask, Piece, WorldConfig, make_world
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, ROUTER, a_world, submit, through, until


def test_there_are_at_least_25_and_each_row_is_one_of_the_tables():
    assert len(PROBES) >= 25
    assert len(set(PROBES)) == len(PROBES)
    rows = {*DECODE_TABLE.rows, *PREFILL_TABLE.rows, *ROUTER_TABLE.rows}
    assert {row for named in ROWS.values() for row in named} <= rows


def test_in_some_seeds_most_of_them_fire(outcomes):
    fired = {name for outcome in outcomes for name, count in outcome.probes.items() if count}
    assert len(fired) >= 0.8 * len(PROBES)
    assert not fired.intersection(POISON)


def test_a_watcher_counts_rows_and_a_quiet_world_fires_nothing():
    watcher = Watcher()
    world = make_world(WorldConfig(), CORRECT, {1: Ask(1, "a", (1, 2, 3), 2)}, watcher)
    assert not any(watcher.counts().values())
    submit(world)
    until(world, h.Land)
    assert watcher.counts()["lease aborted before its writer closed"] == 0
    world.perform(h.Leave(1))
    through(world)
    assert watcher.counts()["lease aborted before its writer closed"] == 1


def test_timers_are_handed_to_whoever_keeps_time():
    watcher = Watcher()
    world = make_world(WorldConfig(), CORRECT, {1: Ask(1, "a", (1, 2, 3), 2)}, watcher)
    submit(world)
    assert {peer for peer, _ in watcher.timers_set} == {ROUTER}


def test_a_death_in_mid_page_a_late_write_and_an_orphan_are_seen():
    world = a_world(piece=Piece.HALF)
    submit(world)
    landing = until(world, h.Land)
    assert not list(sights(world, landing))
    world.perform(landing)
    assert "process died in the middle of a page" in list(sights(world, h.Crash(PREFILL)))
    world.perform(h.Suspect(DECODE, PREFILL))
    assert list(sights(world, landing)) == ["late write lands in a quarantined page"]
    world.perform(h.Crash(PREFILL))
    assert "orphan lands after its sender died" in list(sights(world, landing))


def test_the_limit_is_seen_from_both_sides():
    limit = a_world().routers()[ROUTER].limit_tokens
    for extra, seen in ((0, ["request exactly at the limit"]), (1, ["request one above the limit"]), (2, [])):
        asks = {1: Ask(1, "a", (1, 2), limit - 2 + extra)}
        world = make_world(WorldConfig(), CORRECT, asks, Watcher())
        assert list(sights(world, h.Submit(ROUTER, 1))) == seen


def test_a_poisoned_page_is_seen_to_come_and_go():
    watcher = Watcher()
    world = make_world(WorldConfig(), CORRECT, {1: Ask(1, "a", (1, 2, 3), 2)}, watcher)
    submit(world)
    until(world, h.Verify)
    page = world.cores[DECODE].leases[LeaseId(1, 1)].pages[0].page
    world.pools[DECODE][page] = world.pools[DECODE][page]._replace(slots=(None, None))
    world.perform(h.Verify(DECODE, LeaseId(1, 1)))
    assert watcher.counts()[POISON[0]] == 1
    through(world)
    world.perform(h.Crash(PREFILL))
    world.perform(h.Suspect(DECODE, PREFILL))
    world.perform(h.CutDone(DECODE, PREFILL))
    assert watcher.counts()[POISON[1]] == 1
    assert not set(POISON) & set(SIGHTS)
