"""Every fault of the catalogue is found in a named scope, and nothing is found there without it."""

import pytest

from kvfence.faults import CATALOGUE, faulty_decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.verification import SCOPES, Why, explorer_finds, find_stranded, search
from kvfence.verification.fault_scopes import FAULT_SCOPES, POISON
from kvfence.world import Kind

STATES_MAX = 50_000
# The correct protocol in the other scopes is `test_catalogue`'s.
QUICK = ("leave", "late-writer", "no-proof", "stray", "limits", "pages", "pair", "unused-slots")


def test_every_fault_has_its_scope():
    assert FAULT_SCOPES.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("fault", FAULT_SCOPES)
def test_the_fault_is_found_there_and_is_what_it_is_said_to_be(fault):
    where = FAULT_SCOPES[fault]
    scope, decisions = SCOPES[where.scope], faulty_decisions((fault,), where.layers_off)()
    if where.stays_away:
        found = find_stranded(scope, decisions).stranded
    else:
        found = explorer_finds(decisions, scope, states_max=STATES_MAX)
    assert found is not None, f"{fault} is not found in {where.scope}"
    assert found.findings[0].kind is where.kind, found.findings


def rows_of(decisions):
    """Rows of the decode table that are taken in the scope for poison, which closes; findings go on."""
    report = search(SCOPES[POISON.scope], decisions, ignored=frozenset(Kind))
    assert report.why is Why.CLOSED
    return {(state, fact) for role, state, fact in report.taken if role == "DecodeCore"}


def test_under_a_fault_the_rows_of_poison_are_taken_and_without_one_they_are_not():
    assert POISON.rows <= rows_of(faulty_decisions(POISON.faults)())
    assert not POISON.rows & rows_of(CORRECT)


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_found_there_without_it(name):
    assert explorer_finds(CORRECT, SCOPES[name]) is None
