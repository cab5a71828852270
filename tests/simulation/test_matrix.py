"""Layers speak of faults that they can see, and of nothing else; without a fault nobody misses them."""

import pytest

from kvfence.faults import CATALOGUE, Layer
from kvfence.simulation.harsh import draw_harsh
from kvfence.simulation.matrix import (
    CONTROLS,
    DETECTING,
    Cell,
    Leaks,
    Verdict,
    control,
    find_leaks,
    hidden_by,
    judge,
    run_with,
    simulator_finds,
)
from kvfence.world import Kind

SHORT, SPLIT = "false-completion/short-transfer", "rejected-continues/split-state"
DIRTY = "unscrubbed-reuse/dirty-added-page"


def test_without_a_fault_layers_that_are_off_are_not_missed():
    assert {name: result["harmed"] for name, result in control(3).items()} == dict.fromkeys(CONTROLS, 0)


@pytest.mark.parametrize(
    ("name", "layer", "verdict"),
    [
        (SHORT, Layer.MANIFEST, Verdict.CAUGHT),
        (SHORT, Layer.SEAL, Verdict.CAUGHT),
        (SHORT, Layer.GUARD, Verdict.CAUGHT),
        (DIRTY, Layer.GUARD, Verdict.MISSED),
        (SHORT, Layer.ADMISSION, Verdict.NOT_APPLICABLE),
        (SPLIT, Layer.ADMISSION, Verdict.CAUGHT),
        (SPLIT, Layer.SEAL, Verdict.CAUGHT),
        ("response-misroute/newest-stream", Layer.SEAL, Verdict.NOT_APPLICABLE),
    ],
)
def test_a_cell_says_who_speaks(name, layer, verdict):
    fault = CATALOGUE[name]
    leaks = find_leaks(fault, wanted=1, seeds_max=20)
    assert leaks.seeds
    cell = judge(fault, layer, leaks)
    assert cell.verdict is verdict
    assert cell.caught == (1 if verdict is Verdict.CAUGHT else 0)


def test_where_no_harm_shows_no_layer_has_caught_anything():
    nothing = Leaks((), (), 5)
    assert judge(CATALOGUE[SHORT], Layer.SEAL, nothing) == Cell(Verdict.NOT_APPLICABLE)


def test_a_fault_is_hidden_by_what_refuses_before_it_acts():
    assert hidden_by(CATALOGUE[SPLIT]) == {Layer.ADMISSION}
    assert not hidden_by(CATALOGUE[SHORT])


def test_the_guard_is_off_where_it_is_left_out():
    swarm, fault = draw_harsh(42), ("transfer-outlives-pages/closed-before-quiet",)
    for layers_off, speaks in ((DETECTING, False), (DETECTING - {Layer.GUARD}, True)):
        outcome = run_with(swarm, fault, layers_off, frozenset((Kind.LAW,)))
        assert ("guard" in outcome.catches) is speaks


def test_the_simulator_counts_seeds():
    found = simulator_finds(CATALOGUE[SHORT], wanted=3, seeds_max=20)
    assert found.found == 3
    assert found.median is not None
    assert found.kinds == (Kind.FENCE.value,)
    assert simulator_finds(CATALOGUE[SPLIT], wanted=1, seeds_max=1).found == 0
