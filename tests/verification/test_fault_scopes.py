"""Every fault of the catalogue is found in a named scope, and nothing is found there without it."""

import pytest

from kvfence.faults import CATALOGUE, faulty_decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.verification import SCOPES, explorer_finds, find_stranded
from kvfence.verification.fault_scopes import FAULT_SCOPES

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


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_found_there_without_it(name):
    assert explorer_finds(CORRECT, SCOPES[name]) is None
