"""The way home: every state of the correct protocol has one, and a Close that is asked once loses it."""

from dataclasses import replace

import pytest

from kvfence.faults import faulty_decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.protocol.errors import InvariantError
from kvfence.verification import SCOPES, find_stranded
from kvfence.verification.catalogue import HOMING
from kvfence.world import Kind
from kvfence.world import happenings as h


@pytest.mark.parametrize("name", [name for name in HOMING if name not in ("crash-prefill", "cut-fails")])
def test_every_state_has_a_way_home(name):
    homing = find_stranded(SCOPES[name], CORRECT)
    assert homing.stranded_states == 0
    assert homing.stranded is None
    assert 0 < homing.homes < homing.states < homing.edges


def test_what_is_asked_for_once_and_lost_never_comes_home():
    decisions = faulty_decisions(("transfer-outlives-pages/close-asked-once",))()
    homing = find_stranded(SCOPES["smoke"], decisions)
    assert homing.stranded_states > 0
    assert homing.stranded is not None
    assert homing.stranded.findings[0].kind is Kind.NOT_HOME
    assert any(isinstance(happening, h.Drop) for happening in homing.stranded.happenings)


def test_a_dead_node_that_stays_dead_keeps_nobody_from_home():
    scope = replace(SCOPES["crash-router"], restarts=False)
    assert find_stranded(scope, CORRECT).stranded_states == 0


def test_a_scope_that_is_too_large_is_refused():
    with pytest.raises(InvariantError, match="too large"):
        find_stranded(SCOPES["leave"], CORRECT, states_max=100)
