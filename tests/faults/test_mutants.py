"""Each mutant decides wrongly where the protocol decides rightly, and nowhere else."""

from dataclasses import replace

import pytest

from kvfence.faults import CATALOGUE, Layer, faulty_decisions
from kvfence.faults.mutants_prefill import Placeholder
from kvfence.protocol import Decisions
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import LeaseId, Manifest, Peer, Refusal

INCIDENT = "rejected-continues/incident"
SPLIT = "rejected-continues/split-state"
ADMISSION = "rejected-continues/admission-unchecked"
OLD, NEW, OTHER = Peer("prefill-0", 5), Peer("prefill-0", 6), Peer("prefill-1", 5)
MANIFEST = Manifest(LeaseId(7, 1), OLD, 9, 2, b"h", 9, 9)
PROMPT = tuple(range(10))


def answers(d):
    """What these decisions say wherever a fault of the catalogue says something else."""
    fitted = d.fit_prompt(PROMPT, 4)
    return {
        "needed_tokens": d.needed_tokens(20, 4),
        "advertised_tokens": d.advertised_tokens(64, 32),
        "admits": d.admits(33, 32),
        "fits_node": d.fits_node(33, 32),
        "sharing_domain": len({d.sharing_domain("a"), d.sharing_domain("b")}),
        "accepts_token": d.accepts_token(5, 5, is_current_attempt=False),
        "aborts_before_next_attempt": d.aborts_before_next_attempt(),
        "addressee": d.addressee(3, iter((1, 3, 4))),
        "fit_prompt": "refused" if isinstance(fitted, Refusal) else fitted,
        "refuses_late_prefill": d.refuses_late_prefill(lease_is_closed=True),
        "pins_match": d.pins_match(),
        "publishes": d.publishes(sealed=False),
        "prefix_domain": len({d.prefix_domain("a"), d.prefix_domain("b")}),
        "prefix_digest": len(d.prefix_digest(b"x")),
        "chains_prefix": d.chains_prefix(),
        "compares_prefix": d.compares_prefix(),
        "zeroes_unused_slots": d.zeroes_unused_slots(),
        "pages_to_post": [d.pages_to_post(3, last=last) for last in (False, True)],
        "owed_pages": d.owed_pages(3, 1),
        "is_written": [d.is_written(2, 3, 0), d.is_written(3, 3, 1), d.is_written(3, 3, 0)],
        "failed_write_counts": d.failed_write_counts(),
        "first_token": d.first_token(7, (7, 8)),
        "claims": d.claims(MANIFEST).pages,
        "posts_are_quiet": [d.posts_are_quiet(1, 0), d.posts_are_quiet(0, 1)],
        "sources_are_quiet": [d.sources_are_quiet(1, 0), d.sources_are_quiet(0, 1)],
        "reposts_at_deadline": d.reposts_at_deadline(),
        "lease_number": d.lease_number(5, (1, 3)),
        "may_free": [d.may_free(1, writer_is_quiet=True), d.may_free(0, writer_is_quiet=False)],
        "deadline_is_quiet": d.deadline_is_quiet(),
        "lost_is_quiet": d.lost_is_quiet(),
        "abort_is_quiet": d.abort_is_quiet(),
        "unknown_cut_is_quiet": d.unknown_cut_is_quiet(),
        "illegal_is_quiet": d.illegal_is_quiet(),
        "asks_again": d.asks_again(),
        "asked_writer": [d.asked_writer(OLD, NEW), d.asked_writer(OLD, None)],
        "zeroes_added_pages": d.zeroes_added_pages(),
        "adopts_old_pool": d.adopts_old_pool(),
        "padding_page": d.padding_page(9),
        "table_row": [d.table_row(row, 3) for row in range(3)],
        "speaks_for": [d.speaks_for(NEW, OLD), d.speaks_for(OTHER, OLD)],
    }


RIGHT = answers(Decisions())
WRONG = {
    "needed_tokens": 20,
    "advertised_tokens": 64,
    "fits_node": True,
    "sharing_domain": 1,
    "accepts_token": True,
    "aborts_before_next_attempt": False,
    "addressee": 4,
    "fit_prompt": (0,),
    "refuses_late_prefill": False,
    "pins_match": False,
    "publishes": True,
    "prefix_domain": 1,
    "prefix_digest": 1,
    "chains_prefix": False,
    "compares_prefix": False,
    "zeroes_unused_slots": False,
    "pages_to_post": [3, 2],
    "owed_pages": 1,
    "failed_write_counts": True,
    "first_token": 8,
    "claims": 3,
    "posts_are_quiet": [True, True],
    "reposts_at_deadline": True,
    "lease_number": 2,
    "may_free": [True, False],
    "deadline_is_quiet": True,
    "lost_is_quiet": True,
    "abort_is_quiet": True,
    "unknown_cut_is_quiet": True,
    "illegal_is_quiet": True,
    "asks_again": False,
    "asked_writer": [NEW, OLD],
    "zeroes_added_pages": False,
    "adopts_old_pool": True,
    "padding_page": 0,
    "table_row": [1, 2, 0],
    "speaks_for": [True, False],
}
# Where two faults get one decision wrong in ways of their own.
OWN = {
    "false-completion/done-before-written": {"is_written": [False, True, True]},
    "false-completion/short-transfer": {"is_written": [True, False, True]},
    "false-completion/whole-claimed": {"is_written": [True, False, True]},
    "transfer-outlives-pages/sources-freed-early": {"sources_are_quiet": [False, True]},
    "step-outlives-pages/sources-freed-under-step": {"sources_are_quiet": [True, False]},
}


def wrong_of(name):
    """What the fault says where it is wrong."""
    own = OWN.get(name, {})
    return {decision: own.get(decision, WRONG.get(decision)) for decision in CATALOGUE[name].decisions}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_fault_goes_wrong_in_its_places_alone(name):
    wrong = wrong_of(name)
    assert answers(faulty_decisions([name])()) == {**RIGHT, **wrong}
    assert all(RIGHT[decision] != answer for decision, answer in wrong.items())


def test_every_set_of_faults_can_be_on_in_any_order():
    names = list(CATALOGUE)
    assert answers(faulty_decisions(names)()) == answers(faulty_decisions(names[::-1])())
    both = answers(faulty_decisions([SPLIT, ADMISSION, SPLIT])())
    assert both == {**RIGHT, **wrong_of(SPLIT), **wrong_of(ADMISSION)}


def test_a_rejection_is_kept_in_a_second_field_where_nobody_looks():
    placeholder = faulty_decisions([INCIDENT])().fit_prompt(PROMPT, 4)
    assert isinstance(placeholder, Placeholder)
    assert placeholder == PROMPT[:1]
    assert placeholder.to_finish == Decisions().fit_prompt(PROMPT, 4)


def test_a_placeholder_stands_only_for_what_does_not_fit():
    assert faulty_decisions([SPLIT])().fit_prompt(PROMPT, 10) is PROMPT


def test_the_incident_is_its_two_halves_and_no_law_6():
    assert wrong_of(INCIDENT) == {**wrong_of(SPLIT), **wrong_of(ADMISSION)}


def test_a_shared_slot_that_nobody_wrote_is_ones_own():
    assert faulty_decisions(["control-slot-reuse/first-token-slot"])().first_token(7, ()) == 7


def test_a_lease_number_is_free_when_none_is_live():
    assert faulty_decisions(["id-collision/lease-number-reused"])().lease_number(5, ()) == 1


def test_the_newest_of_no_streams_is_ones_own():
    assert faulty_decisions(["response-misroute/newest-stream"])().addressee(3, iter(())) == 3


def test_a_claim_of_more_changes_nothing_else():
    assert faulty_decisions(["false-completion/whole-claimed"])().claims(MANIFEST) == replace(
        MANIFEST, pages=3
    )


def test_no_names_are_no_mutants():
    assert faulty_decisions([]) is Decisions
    assert faulty_decisions([], [Layer.SEAL]) is not Decisions


def test_an_unknown_name_is_an_error_and_not_left_out():
    with pytest.raises(OperatorError, match="there is no fault 'typo'"):
        faulty_decisions([SPLIT, "typo"])
