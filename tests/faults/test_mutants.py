"""Each mutant decides wrongly where the protocol decides rightly, and nowhere else."""

import pytest

from kvfence.faults import faulty_decisions
from kvfence.protocol import Decisions, Expectation
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import IntegrityReason, LeaseId, Manifest, Peer, Refusal

ADMISSION = "rejected-continues/admission-unchecked"
SPLIT = "rejected-continues/split-state"
MANIFEST = "false-completion/manifest-unchecked"
SEALS = "false-completion/seals-unchecked"
WRITER, LEASE = Peer("prefill-0", 5), LeaseId(7, 1)
EXPECTED = Expectation(LEASE, WRITER, tokens=100, pages=7, token_hash=b"h")
SHORT = Manifest(LEASE, WRITER, 1, 1, b"h", 9, 1)
PROMPT = tuple(range(10))


def decided(decisions: Decisions) -> dict[str, object]:
    """What these decisions say in the incident's four places."""
    fitted = decisions.fit_prompt(PROMPT, 4)
    return {
        ADMISSION: decisions.admits(11, 10),
        SPLIT: "refused" if isinstance(fitted, Refusal) else fitted,
        MANIFEST: decisions.manifest_fault(SHORT, EXPECTED),
        SEALS: decisions.verifies_seals(),
    }


RIGHT = {ADMISSION: False, SPLIT: "refused", MANIFEST: IntegrityReason.MANIFEST_TOKENS, SEALS: True}
WRONG = {ADMISSION: True, SPLIT: (0,), MANIFEST: None, SEALS: False}


def test_the_protocols_own_decisions_are_right():
    assert decided(Decisions()) == RIGHT


@pytest.mark.parametrize("name", RIGHT)
def test_a_fault_goes_wrong_in_its_place_alone(name):
    assert decided(faulty_decisions([name])()) == {**RIGHT, name: WRONG[name]}


def test_faults_can_be_on_together_in_any_order():
    assert decided(faulty_decisions(list(RIGHT))()) == WRONG
    assert decided(faulty_decisions([SEALS, ADMISSION, SEALS])()) == {
        **RIGHT,
        ADMISSION: True,
        SEALS: False,
    }


def test_a_placeholder_stands_only_for_what_does_not_fit():
    assert faulty_decisions([SPLIT])().fit_prompt(PROMPT, 10) == PROMPT


def test_no_names_are_no_mutants():
    assert faulty_decisions([]) is Decisions


def test_an_unknown_name_is_an_error_and_not_left_out():
    with pytest.raises(OperatorError, match="there is no fault 'typo'"):
        faulty_decisions([SEALS, "typo"])
