"""What others ask: the shortest counterexample, and how it is told."""

from kvfence.faults import faulty_decisions
from kvfence.protocol.decisions import CORRECT
from kvfence.verification import SCOPES, draw, explorer_finds, tell
from kvfence.world import Kind

FAULT = "transfer-outlives-pages/free-on-abort"


def test_nothing_is_found_where_nothing_is_wrong():
    assert explorer_finds(CORRECT, SCOPES["leave"]) is None


def test_a_counterexample_is_told_again_in_a_world_of_its_own():
    decisions = faulty_decisions((FAULT,))()
    found = explorer_finds(decisions, SCOPES["leave"])
    assert found is not None
    moments = tell(found, decisions)
    assert len(moments) == len(found.happenings)
    assert not any(moment.found for moment in moments[:-1])
    assert found.findings[0].what in moments[-1].found[0]


def test_it_is_drawn_as_a_sequence_diagram():
    decisions = faulty_decisions((FAULT,))()
    found = explorer_finds(decisions, SCOPES["leave"])
    assert found is not None
    drawn = draw(found, decisions)
    assert drawn.splitlines()[0].split() == ["when", "clients", "router0", "prefill0", "decode0"]
    assert "!! late write, decode0" in drawn
    assert len([line for line in drawn.splitlines() if line.strip()[:1].isdigit()]) == len(found.happenings)


def test_it_can_look_for_some_kinds_alone():
    decisions = faulty_decisions((FAULT,))()
    found = explorer_finds(decisions, SCOPES["leave"], only=frozenset({Kind.TWO_ENDS}), states_max=500)
    assert found is None
