"""The catalogue: each fault is whole, has a mutant of the decisions it names, and can be found by name."""

import pytest

from kvfence.faults import (
    BUGS,
    CATALOGUE,
    ROOT_CAUSES,
    Harm,
    Layer,
    fault_named,
    lifts_capacity_check,
    sizes_prefill_only,
)
from kvfence.faults.mutants import MUTANTS
from kvfence.protocol import Decisions
from kvfence.protocol.errors import OperatorError

FAULTS = pytest.mark.parametrize("fault", CATALOGUE.values(), ids=CATALOGUE)
FAULTS_MIN = 24
# Slips that a protocol of this kind invites, which nobody has reported in public.
SLIPS = {
    "rejected-continues/recompute-outgrows-pool",
    "transfer-outlives-pages/free-on-illegal",
    "transfer-outlives-pages/reposted-batch",
}
CAPACITY = {"rejected-continues/incident", "rejected-continues/admission-unchecked"}


def test_every_fault_has_a_mutant_and_every_mutant_a_fault():
    assert set(MUTANTS) == set(CATALOGUE)
    assert len(CATALOGUE) >= FAULTS_MIN
    assert len(set(MUTANTS.values())) == len(MUTANTS)


@FAULTS
def test_a_fault_is_of_a_known_class_and_says_what_it_does(fault):
    assert fault.root_cause in ROOT_CAUSES
    assert fault.what.endswith(".")
    assert fault.leaks.endswith(".")
    assert fault.what.count(". ") == fault.leaks.count(". ") == 0, "one sentence each"


@FAULTS
def test_a_fault_stands_for_public_bugs(fault):
    assert set(fault.bugs) <= set(BUGS)
    assert bool(fault.bugs) is (fault.name not in SLIPS)


@FAULTS
def test_a_fault_is_caught_by_two_layers_at_least(fault):
    assert len(set(fault.caught_by)) == len(fault.caught_by) >= 2
    assert list(fault.caught_by) == [layer for layer in Layer if layer in fault.caught_by], "in one order"
    assert Layer.SIMULATOR in fault.caught_by


@FAULTS
def test_a_mutant_changes_the_decisions_that_its_fault_names(fault):
    changed = {name for name in vars(MUTANTS[fault.name]) if hasattr(Decisions, name) and name[0] != "_"}
    assert changed == set(fault.decisions)
    assert MUTANTS[fault.name].__bases__ == (Decisions,), "any set of mutants can be mixed"


@FAULTS
def test_a_fault_is_found_by_its_name(fault):
    assert fault_named(fault.name) is fault


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("false-completion/short-transfers", "did you mean false-completion/short-transfer"),
        ("x", "choose of"),
    ],
)
def test_a_name_that_is_none_is_answered_with_what_there_is(name, words):
    with pytest.raises(OperatorError, match=words):
        fault_named(name)


def test_the_capacity_check_is_lifted_by_what_is_about_it_alone():
    assert {name for name in CATALOGUE if lifts_capacity_check([name])} == CAPACITY
    assert lifts_capacity_check(CATALOGUE)
    assert not lifts_capacity_check([])
    assert lifts_capacity_check([], [Layer.ADMISSION])
    assert not lifts_capacity_check([], [Layer.SEAL])


def test_only_the_incident_sizes_prefill_alone():
    assert [name for name in CATALOGUE if sizes_prefill_only([name])] == ["rejected-continues/incident"]
    assert not sizes_prefill_only([])


def test_nearly_every_fault_leaks():
    harms = [fault.harm for fault in CATALOGUE.values()]
    assert harms.count(Harm.LEAK) >= FAULTS_MIN
    assert {Harm.REUSE, Harm.STALL} <= set(harms)
