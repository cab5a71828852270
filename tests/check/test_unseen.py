"""Every root-cause class is looked for, or a sentence says why none can look."""

import pytest

from kvfence.check.scenarios import SCENARIOS
from kvfence.check.unseen import ROOT_CLASSES, UNSEEN, said_of, seen_by
from kvfence.faults import CATALOGUE
from kvfence.report.root_causes import LIMITS


def test_the_classes_are_those_of_the_catalogue_of_faults_and_more():
    """Faults name their class; what the protocol can not express has none there."""
    assert len(ROOT_CLASSES) == 18
    assert {name.split("/")[0] for name in CATALOGUE} <= set(ROOT_CLASSES)


def test_scenarios_name_no_class_that_is_not_there():
    for scenario in SCENARIOS.values():
        assert set(scenario.classes) <= set(ROOT_CLASSES), scenario.name
        assert scenario.classes, f"{scenario.name} looks for nothing"


@pytest.mark.parametrize("root", ROOT_CLASSES)
def test_each_is_looked_for_or_excused_and_never_both(root):
    assert bool(seen_by(SCENARIOS.values())[root]) != (root in UNSEEN)


@pytest.mark.parametrize("root", ROOT_CLASSES)
def test_each_has_a_limit_in_one_sentence(root):
    assert len(LIMITS[root]) > 30
    assert not LIMITS[root].endswith(".")
    assert said_of(root, SCENARIOS.values()).endswith(LIMITS[root])


def test_what_was_left_out_is_said():
    assert said_of("id-collision", ()) == (
        "id-collision: nothing looks for it here; the scenarios for it were left out"
    )


def test_names_are_those_of_the_registry_in_its_order():
    assert seen_by(SCENARIOS.values())["salt-dropped"] == ("cross-tenant-reuse",)
    assert [scenario.name for scenario in SCENARIOS.values()] == list(SCENARIOS)
    assert next(iter(SCENARIOS)) == "one-word"
