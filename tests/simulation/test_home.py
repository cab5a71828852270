"""What has not come home is named; an uncut writer's pages are shown, and asked for in vain."""

from kvfence.protocol.words import LeaseId, Timer, TimerKind
from kvfence.simulation.home import asks_in_vain, not_home
from kvfence.world import happenings as h
from tests.simulation.rig import DECODE, PREFILL, a_world, submit, through, until

RETRY = h.Fire(DECODE, Timer(TimerKind.CLOSE_RETRY, LeaseId(1, 1)))


def test_at_the_end_of_a_request_all_is_home():
    world = a_world()
    submit(world)
    through(world)
    assert list(not_home(world)) == []


def test_a_request_under_way_is_missing_on_every_node():
    world = a_world()
    submit(world)
    until(world, h.Land)
    said = "\n".join(not_home(world))
    for word in ("request 1 never ends", "router0 keeps", "decode0 keeps", "prefill0 keeps"):
        assert word in said


def test_pages_that_nobody_holds_are_missing():
    world = a_world()
    world.cores[PREFILL].ledger.lease(1, 99)
    assert list(not_home(world)) == ["prefill0 has 1 pages that nobody holds"]


def test_a_poisoned_page_whose_writers_are_cut_is_missing():
    world = a_world()
    submit(world)
    until(world, h.Land)
    core = world.cores[DECODE]
    core._do_poison(core.leases[LeaseId(1, 1)], type("Seen", (), {"poisoned": (0,)})())
    assert "poisoned" not in "\n".join(not_home(world))
    core.poisoned[0].writers.clear()
    assert "decode0 keeps page 0 as poisoned" in "\n".join(not_home(world))


def test_closing_is_asked_in_vain_only_of_an_uncut_writer_and_after_many_times():
    world = a_world()
    submit(world)
    until(world, h.Land)
    world.perform(h.Crash(PREFILL))
    world.perform(h.Suspect(DECODE, PREFILL))
    record = world.cores[DECODE].leases[LeaseId(1, 1)]
    record.closes_asked = 1_000
    assert not asks_in_vain(world, RETRY)
    world.perform(h.CutFails(DECODE, PREFILL))
    assert asks_in_vain(world, RETRY)
    assert "decode0 keeps" not in "\n".join(not_home(world))
    record.closes_asked = 1
    assert not asks_in_vain(world, RETRY)
    assert not asks_in_vain(world, h.Fire(DECODE, Timer(TimerKind.LEASE, LeaseId(1, 1))))
