"""docs/faults.md says what docs/faults.json holds, which is what runs show; every fault has two layers."""

import importlib.util
import json

import pytest

from kvfence.faults import CATALOGUE, Layer
from kvfence.simulation.matrix import Leaks, Poisoned, find_leaks, judge, poison
from tests.house.source import ROOT

DATA = json.loads((ROOT / "docs" / "faults.json").read_text(encoding="utf-8"))
AGAIN = (
    ("false-completion/short-transfer", Layer.MANIFEST),
    ("false-completion/whole-claimed", Layer.SEAL),
    ("false-completion/whole-claimed", Layer.MANIFEST),
    ("rejected-continues/split-state", Layer.ADMISSION),
    ("rejected-continues/admission-unchecked", Layer.REFUSAL),
    ("id-collision/lease-number-reused", Layer.SEAL),
    ("response-misroute/newest-stream", Layer.SEAL),
    ("transfer-outlives-pages/free-on-abort", Layer.GUARD),
    ("transfer-outlives-pages/close-asked-once", Layer.QUARANTINE),
)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_faults", ROOT / "docs" / "make_faults.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(script):
    assert (ROOT / "docs" / "faults.md").read_text(encoding="utf-8") == script.page(DATA)


def test_the_check_from_outside_is_shown_as_it_was_measured(script):
    name = "row-mixup/shifted-tables"
    found, lost = {"found": "marker-sweep"}, {"found": None}
    fakes = {name: {"one-word": {"0": lost, "1": lost}, "quick": {"1": found}}}
    nothing = {"engine": {}, "fake": {}}
    assert script.outside(name, nothing) == "·"
    assert script.outside(name, {**nothing, "fake": fakes}) == "caught 1/2 on a fake: marker-sweep"
    real = {**nothing, "fake": fakes, "engine": {name: {"its scenarios": {"0": found, "1": lost}}}}
    assert script.outside(name, real) == "caught 1/2: marker-sweep"
    real["engine"][name]["its scenarios"] = {"0": lost}
    assert script.outside(name, real) == "missed"


def test_every_fault_was_measured_and_is_caught_by_two_layers(script):
    assert list(DATA["faults"]) == list(CATALOGUE)
    lacking = [name for name, entry in DATA["faults"].items() if len(script.caught_by(entry)) < 2]
    assert not lacking


# Seen on real nodes (`tests/faults` holds it to that), and in no run of the matrix: there a page is evicted
# after its prompt was computed, and the guard of the next step has nothing to look at.
ON_NODES_ALONE = {"match-not-pinned/unpinned-match": {"guard"}}


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogue_says_what_was_measured(script, name):
    fault = CATALOGUE[name]
    said = {layer.value for layer in fault.caught_by if layer is not Layer.OUTSIDE}
    chance = {layer.value for layer in fault.by_chance}
    measured = set(script.caught_by(DATA["faults"][name]))
    assert not said & chance
    assert measured == (said | chance) - ON_NODES_ALONE.get(name, set())


def test_a_page_is_poisoned_and_comes_home_where_a_fault_is_on_and_nowhere_else():
    assert DATA["poison"]["set_apart"] >= DATA["poison"]["came_home"] > 0
    assert poison(range(140, 141)) == Poisoned(1, 1, 1)
    assert poison(range(140, 141), faults=()) == Poisoned(1, 0, 0)


def test_every_fault_is_found_by_the_simulator():
    assert not [name for name, entry in DATA["faults"].items() if not entry["simulator"]["found"]]


def test_every_fault_does_its_harm_where_nobody_watches():
    assert not [name for name, entry in DATA["faults"].items() if not entry["harm"]["seeds"]]


def test_without_a_fault_there_is_no_harm():
    assert DATA["control"]
    assert not [name for name, result in DATA["control"].items() if result["harmed"]]


@pytest.mark.parametrize(("name", "layer"), AGAIN, ids=lambda part: getattr(part, "value", part))
def test_a_cell_measured_again_says_the_same(name, layer):
    entry = DATA["faults"][name]
    kept = entry["cells"][layer.value]
    cell = judge(CATALOGUE[name], layer, Leaks(tuple(entry["harm"]["seeds"]), (), 0))
    assert (cell.verdict.value, cell.caught, cell.runs) == (kept["verdict"], kept["caught"], kept["runs"])


def test_the_first_seed_with_harm_is_found_again():
    name = "false-completion/short-transfer"
    leaks = find_leaks(CATALOGUE[name], wanted=1, seeds_max=10)
    assert leaks.seeds[0] == DATA["faults"][name]["harm"]["seeds"][0]
