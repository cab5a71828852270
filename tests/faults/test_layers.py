"""Layers as switches: each leaves exactly its own check out, in any company."""

import pytest

from kvfence.faults import SWITCH_NAMES, SWITCHES, Layer, faulty_decisions, layer_named
from kvfence.protocol import Decisions, Expectation
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import IntegrityReason, LeaseId, Manifest, Peer, Refusal

WRITER, LEASE = Peer("prefill-0", 5), LeaseId(7, 1)
EXPECTED = Expectation(LEASE, WRITER, tokens=100, pages=7, token_hash=b"h")
SHORT = Manifest(LEASE, WRITER, 1, 1, b"h", 9, 1)


def checks(decisions):
    """What each layer says when it should speak."""
    return {
        Layer.ADMISSION: (decisions.advertised_tokens(9, 4), decisions.fits_node(9, 4)),
        Layer.REFUSAL: (
            isinstance(decisions.fit_prompt((1, 2, 3), 2), Refusal),
            decisions.owed_pages(3, 1),
            decisions.fits_pool(9, 4),
        ),
        Layer.MANIFEST: decisions.manifest_fault(SHORT, EXPECTED),
        Layer.SEAL: decisions.verifies_seals(),
        Layer.GUARD: decisions.guards_steps(),
    }


ON = {
    Layer.ADMISSION: (4, False),
    Layer.REFUSAL: (True, 3, False),
    Layer.MANIFEST: IntegrityReason.MANIFEST_TOKENS,
    Layer.SEAL: True,
    Layer.GUARD: True,
}
OFF = {
    Layer.ADMISSION: (9, True),
    Layer.REFUSAL: (False, 1, True),
    Layer.MANIFEST: None,
    Layer.SEAL: False,
    Layer.GUARD: False,
}


def test_with_nothing_off_every_layer_speaks():
    assert checks(Decisions()) == ON
    assert set(SWITCHES) == set(ON)


@pytest.mark.parametrize("layer", SWITCHES)
def test_a_layer_that_is_off_is_silent_and_the_others_are_not(layer):
    assert checks(faulty_decisions([], [layer])()) == {**ON, layer: OFF[layer]}


def test_all_can_be_off():
    assert checks(faulty_decisions([], list(SWITCHES))()) == OFF


def test_a_prompt_is_cut_to_what_fits_when_nobody_refuses():
    cuts = faulty_decisions([], [Layer.REFUSAL])()
    assert cuts.fit_prompt((1, 2, 3), 2) == (1, 2)
    assert cuts.fit_prompt((1, 2, 3), 3) == (1, 2, 3)


def test_a_fault_does_what_it_does_whichever_layers_are_off():
    both = faulty_decisions(["rejected-continues/split-state"], [Layer.REFUSAL])()
    assert both.fit_prompt((1, 2, 3), 2) == (1,)


def test_a_layer_is_found_by_its_name():
    assert [layer_named(name) for name in SWITCH_NAMES] == list(SWITCHES)


@pytest.mark.parametrize(("name", "words"), [("sael", "did you mean seal"), ("quarantine", "choose of")])
def test_what_has_no_switch_is_refused(name, words):
    with pytest.raises(OperatorError, match=words):
        layer_named(name)
    with pytest.raises(OperatorError, match="no layer that can be switched off"):
        faulty_decisions([], [Layer.QUARANTINE])
