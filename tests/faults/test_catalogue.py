"""The catalogue: each fault is whole, has a mutant of the decision that it names, and can be found by name."""

import pytest

from kvfence.faults import CATALOGUE, Layer, fault_named, lifts_capacity_check
from kvfence.faults.catalogue import CAPACITY_FAULTS
from kvfence.faults.mutants import MUTANTS
from kvfence.protocol import Decisions
from kvfence.protocol.errors import OperatorError

FAULTS = pytest.mark.parametrize("fault", CATALOGUE.values(), ids=CATALOGUE)


def test_every_fault_has_a_mutant_and_every_mutant_a_fault():
    assert set(MUTANTS) == set(CATALOGUE)


@FAULTS
def test_a_fault_is_named_after_its_root_cause_and_says_who_catches_it(fault):
    assert fault.name.startswith(f"{fault.root_cause}/")
    assert fault.what
    assert fault.caught_by, "a fault that nothing catches has no place here"
    assert set(fault.caught_by) <= set(Layer)


@FAULTS
def test_a_mutant_changes_the_one_decision_that_its_fault_names(fault):
    changed = {name for name in vars(MUTANTS[fault.name]) if hasattr(Decisions, name) and name[0] != "_"}
    assert changed == {fault.decision}


@FAULTS
def test_a_fault_is_found_by_its_name(fault):
    assert fault_named(fault.name) is fault


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("false-completion/seal-unchecked", "did you mean false-completion/seals-unchecked"),
        ("x", "choose of"),
    ],
)
def test_a_name_that_is_none_is_answered_with_what_there_is(name, words):
    with pytest.raises(OperatorError, match=words):
        fault_named(name)


def test_the_capacity_check_is_lifted_by_the_faults_about_it_alone():
    assert set(CATALOGUE) >= CAPACITY_FAULTS
    for name in CATALOGUE:
        assert lifts_capacity_check([name]) is (name in CAPACITY_FAULTS)
    assert lifts_capacity_check(CATALOGUE)
    assert not lifts_capacity_check([])
