"""The way home: every state of the correct protocol has one, and no fair run goes round away from it."""

from dataclasses import replace

import pytest

from kvfence.faults import faulty_decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.errors import InvariantError
from kvfence.verification import SCOPES, draw, find_stranded, search
from kvfence.verification.engine import Engine
from kvfence.verification.search import Limits
from kvfence.world import Kind
from kvfence.world import happenings as h

# All closing scopes are `test_catalogue`'s.
QUICK = ("smoke", "late-writer", "no-proof", "stray", "steps")


@pytest.mark.parametrize("name", QUICK)
def test_every_state_has_a_way_home_and_no_fair_run_stays_away(name):
    homing = find_stranded(SCOPES[name], CORRECT)
    assert homing.stranded_states == 0
    assert homing.counterexample is None
    assert 0 < homing.homes < homing.states < homing.edges
    assert homing.rounds == homing.left + homing.timed


def test_the_same_is_said_where_nothing_is_taken_for_alike():
    alike, apart = (find_stranded(SCOPES["smoke"], CORRECT, symmetric=flag) for flag in (True, False))
    assert apart.states > alike.states
    assert apart.counterexample is alike.counterexample is None
    assert apart.rounds > alike.rounds > 0


def test_two_processes_say_what_one_says():
    scope = SCOPES["smoke"]
    one = search(scope, CORRECT, ways_home=True).homing
    two = search(scope, CORRECT, ways_home=True, jobs=2, limits=Limits(wide=10)).homing
    assert one is not None
    assert one == two


def close_is_asked_once():
    return faulty_decisions(("transfer-outlives-pages/close-asked-once",))()


def test_what_is_asked_for_once_and_lost_never_comes_home():
    homing = find_stranded(SCOPES["smoke"], close_is_asked_once())
    assert homing.stranded_states > 0
    assert homing.stranded is not None
    assert homing.stranded.findings[0].kind is Kind.NOT_HOME
    assert any(isinstance(happening, h.Drop) for happening in homing.stranded.happenings)


def test_two_processes_find_it_too_in_as_few_steps():
    kinds = frozenset(Kind)
    one = find_stranded(SCOPES["smoke"], close_is_asked_once())
    two = search(
        SCOPES["smoke"],
        close_is_asked_once(),
        ignored=kinds,
        ways_home=True,
        jobs=2,
        limits=Limits(wide=10),
    ).homing
    assert one.stranded is not None and two is not None and two.stranded is not None
    assert one.stranded_states == two.stranded_states
    assert len(one.stranded.happenings) == len(two.stranded.happenings)


def test_who_works_only_when_no_message_waits_can_be_kept_from_it_for_ever(monkeypatch):
    """A broken node: hellos of a writer that was lost come every second, and a verification never begins."""
    enabled = Engine.enabled

    def only_when_no_message_waits(engine, state):
        waits = any(state[place].value for place in engine.layout.wires.values())
        return [m for m in enabled(engine, state) if not (waits and isinstance(m.happening, h.Verify))]

    scope = replace(SCOPES["suspect"], asks=SCOPES["suspect"].asks[:1], kinds=())
    healthy = find_stranded(scope, CORRECT)
    assert (healthy.rounds > 0, healthy.counterexample) == (True, None)
    monkeypatch.setattr(Engine, "enabled", only_when_no_message_waits)
    homing = find_stranded(scope, CORRECT)
    assert homing.stranded_states == 0, "there is a way; it need not be taken"
    assert homing.kept > 0
    assert homing.livelock is not None
    *_, hello, heard = homing.livelock.happenings
    assert {type(hello), type(heard)} == {h.Announce, h.Deliver}
    assert "Hello" in draw(homing.livelock, CORRECT)


def test_a_dead_node_that_stays_dead_keeps_nobody_from_home():
    scope = replace(SCOPES["crash-router"], restarts=False)
    assert find_stranded(scope, CORRECT).stranded_states == 0


def test_a_scope_that_does_not_close_is_refused():
    with pytest.raises(InvariantError, match="closes"):
        find_stranded(replace(SCOPES["leave"], depth=5), CORRECT)
