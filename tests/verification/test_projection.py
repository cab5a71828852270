"""A world is reduced to the twin's variables; one that the twin cannot have is refused, not bent."""

import pytest

from kvfence.protocol import Decisions
from kvfence.protocol.errors import InvariantError
from kvfence.verification.projection import project
from kvfence.verification.twin_scopes import TWIN_SCOPES
from kvfence.verification.twin_states import mapped
from kvfence.world import InPlace, WorldConfig, make_world
from kvfence.world import happenings as h

SCOPE = next(scope for scope in TWIN_SCOPES if scope.name == "abort")


@pytest.fixture
def world():
    cores = SCOPE.for_cores()
    return make_world(cores.config, Decisions(), cores.by_number, InPlace())


def peers(world):
    return tuple(world.cores)


def seen(world):
    return dict(project(world, 1))


def to_the_end_of(world, kind):
    """Let what follows happen, oldest first, until something of this kind has happened."""
    for _ in range(100):
        following = next(each for each in world.enabled() if not isinstance(each, h.Fire))
        world.perform(following)
        if isinstance(following, kind):
            return
    raise AssertionError(f"no {kind.__name__} happened")


def test_nothing_was_asked(world):
    found = seen(world)
    assert found["ledger"] == mapped({page: mapped({"state": "free", "owner": 0}) for page in (0, 1)})
    assert found["free"] == (0, 1)
    assert found["wires"] == mapped(dict.fromkeys(("rd", "dr", "rp", "dp", "pd"), ()))
    assert found["router"] == (
        mapped({"state": "new", "number": 0, "writes": False, "overdue": False, "retries": 0}),
    )
    assert (found["known"], found["alive"], found["reach"], found["full"]) == (
        True,
        True,
        "writing",
        frozenset(),
    )
    assert (found["next"], found["floor"], found["said"], found["rows"], found["step"]) == (
        1,
        1,
        ("",),
        (),
        (),
    )


def test_a_reservation_on_its_way_back(world):
    router, _, decode = peers(world)
    world.perform(h.Submit(router, 1))
    assert dict(seen(world)["wires"].pairs)["rd"] == (("Reserve", 1, 1),)
    world.perform(h.Deliver(router, decode))
    found = seen(world)
    assert dict(found["wires"].pairs)["dr"] == (("Reserved", 1, 1, 1, (0,)),)
    assert dict(found["ledger"].pairs)[0] == mapped({"state": "reserved", "owner": 1})
    assert dict(found["content"].pairs) == {0: 0, 1: 0}, "a stamp is nobody's content"
    assert dict(found["decode"][0].pairs)["tail"] == 1


def test_a_write_in_flight_and_landed(world):
    router, _, _ = peers(world)
    world.perform(h.Submit(router, 1))
    to_the_end_of(world, h.Retire)
    assert seen(world)["flights"] == frozenset({(1, 1, 0)})
    to_the_end_of(world, h.Land)
    found = seen(world)
    assert found["flights"] == frozenset()
    assert dict(found["content"].pairs) == {0: 1, 1: 0}
    assert dict(found["writer"][0].pairs)["open"] is True


def test_the_tail_is_the_rows_own_and_the_spare_page_is_free(world):
    router, _, _ = peers(world)
    world.perform(h.Submit(router, 1))
    to_the_end_of(world, h.Verify)
    found = seen(world)
    assert dict(found["ledger"].pairs) == {
        0: mapped({"state": "free", "owner": 0}),
        1: mapped({"state": "open", "owner": 1}),
    }
    assert dict(found["content"].pairs)[1] == 1
    assert found["rows"] == (1,)
    assert found["said"] == ("done",)


def test_of_a_dead_writer_nothing_is_left_but_what_it_said(world):
    router, prefill, decode = peers(world)
    world.perform(h.Submit(router, 1))
    to_the_end_of(world, h.Complete)
    world.perform(h.Crash(prefill))
    world.perform(h.Suspect(decode, prefill))
    found = seen(world)
    assert (found["alive"], found["known"], found["reach"]) == (False, True, "cutting")
    assert found["said"] == ("",)
    assert dict(found["wires"].pairs)["pd"] == (("Closed", 1, "done"),)
    world.perform(h.CutDone(decode, prefill))
    assert seen(world)["reach"] == "cut"


def test_two_writers_are_refused():
    world = make_world(WorldConfig(prefills=2), Decisions(), {}, InPlace())
    with pytest.raises(InvariantError, match="one node a role"):
        project(world, 1)


def test_a_message_that_the_twin_does_not_have_is_refused(world):
    router, _, decode = peers(world)
    world.perform(h.Announce(decode, router))
    with pytest.raises(InvariantError, match="knows no Hello"):
        project(world, 1)


def test_a_wire_that_the_twin_does_not_have_is_refused(world):
    router, prefill, _ = peers(world)
    world.perform(h.Announce(prefill, router))
    with pytest.raises(InvariantError, match="no wire pr"):
        project(world, 1)


def test_more_leases_than_the_scope_has_are_refused(world):
    router, _, decode = peers(world)
    world.perform(h.Submit(router, 1))
    world.perform(h.Deliver(router, decode))
    with pytest.raises(InvariantError, match="room for 0 leases"):
        project(world, 0)


def test_an_epoch_that_is_not_the_ledgers_is_refused(world):
    router, _, decode = peers(world)
    world.perform(h.Submit(router, 1))
    world.perform(h.Deliver(router, decode))
    world.cores[decode].ledger.epoch[0] += 1
    with pytest.raises(InvariantError, match="another epoch or owner"):
        project(world, 1)
