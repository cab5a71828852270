"""What should be possible is reached: a page is poisoned and comes home, under a fault and not without one."""

from dataclasses import replace

import pytest

from kvfence.faults import Layer, faulty_decisions
from kvfence.protocol import CORRECT
from kvfence.protocol.words import Peer
from kvfence.verification import SCOPES
from kvfence.verification.fault_scopes import POISON
from kvfence.verification.reaching import poison_comes, poison_goes, shortest_run
from kvfence.verification.scopes import Weather
from kvfence.world import InPlace, make_world
from kvfence.world import happenings as h

STATES_MAX = 50_000
SCOPE = SCOPES[POISON.scope]
PREFILL, DECODE = Peer("prefill0", 1), Peer("decode0", 1)
DETECTING = (Layer.SEAL, Layer.GUARD)


def run_to(goal, decisions):
    return shortest_run(SCOPE, decisions, goal, states_max=STATES_MAX)


def test_a_poisoned_page_comes_home_only_after_the_cut_of_its_writer():
    decisions = faulty_decisions(POISON.faults)()
    happenings = run_to(poison_goes, decisions)
    assert h.CutDone(DECODE, PREFILL) in happenings
    world = make_world(SCOPE.config, decisions, dict(SCOPE.by_number), InPlace())
    shown = []
    for happening in happenings:
        world.perform(happening)
        shown.append(dict(world.cores[DECODE].poisoned))
    assert any(shown)
    assert not shown[-1]
    assert not any(shown[happenings.index(h.CutDone(DECODE, PREFILL)) :]), "then at once"


@pytest.mark.parametrize(
    ("faults", "layers_off"),
    [((), ()), (POISON.faults, DETECTING)],
    ids=["no fault", "nobody looks"],
)
def test_without_the_fault_or_without_who_looks_no_page_is_poisoned(faults, layers_off):
    assert run_to(poison_comes, faulty_decisions(faults, layers_off)()) is None


def test_within_too_few_states_nothing_is_reached():
    assert shortest_run(SCOPE, CORRECT, lambda _before, _after: True, states_max=0) is None
    assert len(shortest_run(SCOPE, CORRECT, lambda _before, _after: True, states_max=2)) == 1


def test_while_a_writer_lives_its_poison_stays():
    calm = replace(SCOPE, weather=Weather(leave=1))
    decisions = faulty_decisions(POISON.faults)()
    assert shortest_run(calm, decisions, poison_comes, states_max=STATES_MAX)
    assert shortest_run(calm, decisions, poison_goes, states_max=STATES_MAX) is None
