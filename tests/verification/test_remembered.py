"""What is remembered is what the world does: every part, after every happening of long runs."""

import pytest
from tests.verification.walks import WEATHERS, plain_world, scope_of, walk

from kvfence.protocol.decisions import CORRECT
from kvfence.verification.engine import Engine
from kvfence.verification.layout import LIVING
from kvfence.verification.remembered import RememberedWorld, owns_page
from kvfence.world import happenings as h


@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("is_wide", [False, True], ids=["one page", "wide"])
def test_a_remembered_happening_changes_what_a_plain_world_changes(weather, is_wide):
    scope = scope_of(WEATHERS[weather], is_wide=is_wide)
    engine = Engine(scope, CORRECT)
    steps = 0
    for seed in range(6):
        world = plain_world(scope)
        for _, move, new in walk(engine, 60, seed):
            world.perform(move.happening)
            assert engine.maker.state_of(world, new[-1].value) == new, move.happening
            assert not world.findings
            steps += 1
    assert steps > 100
    assert engine.performed < steps, "some of it came from memory"


def test_it_notes_what_it_looked_at_once_and_in_order():
    scope = scope_of(WEATHERS["crashes"])
    engine = Engine(scope, CORRECT)
    world = RememberedWorld(engine.layout, engine.start(), plain_world(scope))
    router = next(peer for peer in world.living if peer.node == "router0")
    world.perform(h.Submit(router, 1))
    looked = [place for place, _ in world.seen]
    assert len(looked) == len(set(looked))
    assert LIVING in looked and engine.layout.node["router0"] in looked
    assert engine.layout.node["decode0"] not in looked, "a message is said without looking at who hears it"
    assert [(sender.node, receiver.node) for sender, receiver, _ in world.spoken] == [("router0", "decode0")]


def test_a_landing_asks_one_question_of_decode_and_depends_on_nothing_else_there():
    scope = scope_of(WEATHERS["writes"])
    engine = Engine(scope, CORRECT)
    place = engine.layout.node["decode0"]
    for state, move, _ in walk(engine, 60, 3):
        if isinstance(move.happening, h.Land):
            world = RememberedWorld(engine.layout, state, plain_world(scope))
            world.perform(move.happening)
            assert place not in [looked for looked, _ in world.seen]
            assert any(looked[0] == place for looked, _ in world.seen if isinstance(looked, tuple))
            return
    pytest.fail("no write landed in that run")


def test_whose_page_it_is_is_asked_under_the_incarnation_and_the_epoch():
    scope = scope_of(WEATHERS["writes"])
    engine = Engine(scope, CORRECT)
    place = engine.layout.node["decode0"]
    for _, _, new in walk(engine, 60, 3):
        core = new[place].value.core
        if core.leases:
            lease, record = next(iter(core.leases.items()))
            ref = record.pages[0]
            right = (core.me.incarnation, lease.sequence, ref.page, ref.epoch)
            assert owns_page(new[place], right)
            for wrong in range(4):
                other = tuple(value + (index == wrong) for index, value in enumerate(right))
                if wrong != 2:  # the next page may be the lease's too
                    assert not owns_page(new[place], other)
            return
    pytest.fail("nothing was leased in that run")
