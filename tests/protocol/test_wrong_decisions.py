"""Every decision, got wrong: the random schedules find each of them, by a law, by content or by an answer.

A decision that could be wrong without anybody noticing would be no decision. The schedules are those of
`test_schedules.py`, from fixed seeds; what finds a mutant differs, and is part of the table.
"""

import random

import pytest
from tests.protocol.rig import Joined
from tests.protocol.test_prefill import Shelf
from tests.protocol.test_schedules import STEPS_MAX, come_home, network_faults, play

from kvfence.protocol import Decisions
from kvfence.protocol.errors import InvariantError

RUNS_MAX = 250
EXEMPT = {
    # Met by the tests of one role: a schedule of these sizes does not get there, or both ends agree.
    "admits",  # decode refuses by itself; the incident's test bypasses it
    "fit_prompt",  # never asked for too much while the router is right
    "manifest_fault",  # an honest writer's manifest is never wrong
    "verifies_seals",  # nor are its seals
    "claims",
    "sets_poison_apart",  # nothing is poisoned while nothing is misdirected
    "unknown_cut_is_quiet",  # the rig's cuts are proven
    "copies_tail",  # the executor's part
    "speaks_for",  # the rig's links drop what is meant for another incarnation
    "needed_tokens",
    "advertised_tokens",
    "fits_node",
    "fits_pool",
    "owed_pages",  # what is computed is what was reserved while nobody puts a placeholder in its place
    "illegal_is_quiet",  # nothing illegal comes between nodes that are right
    "first_token",  # the rig's answers are names of prompts: `kvfence.faults` shows these on real nodes
    "addressee",
    "sharing_domain",
    "prefix_domain",
    "prefix_digest",
    "chains_prefix",
    "compares_prefix",
    "asked_writer",  # the wrong one's answer is not believed
    "asks_again",  # the rig loses no Close between the living
    "lease_number",  # what was said of a number before differs by its token hash: refused, not wrong
    # Bytes, steps and processes, which the rig does not have.
    "zeroes_unused_slots",
    "zeroes_added_pages",
    "adopts_old_pool",
    "guards_steps",
    "padding_page",
    "table_row",
    "refuses_after_abort",  # keeps a request from costing pages twice; the lease deadline clears up
}


def wrong(name):
    """Decisions of which one is wrong; a short transfer is also said to be complete."""
    answers = {name: MUTANTS[name]}
    if name == "pages_to_post":
        answers["is_written"] = lambda posted, pages, in_flight: in_flight == 0
    bind = {key: (lambda answer: lambda self, *a, **k: answer(*a, **k))(a) for key, a in answers.items()}
    return type(name, (Decisions,), bind)()


MUTANTS = {
    "accepts_token": lambda *a, **k: True,
    "aborts_before_next_attempt": lambda: False,
    "refuses_late_prefill": lambda **k: False,
    "pins_match": lambda: False,
    "publishes": lambda **k: True,
    "pages_to_post": lambda ready, last: max(0, ready - 1) if last else ready,
    "is_written": lambda posted, pages, in_flight: posted == pages,
    "posts_are_quiet": lambda *a: True,
    "sources_are_quiet": lambda steps, reading: steps == 0,
    "reposts_at_deadline": lambda: True,
    "may_free": lambda steps, writer_is_quiet: writer_is_quiet,
    "deadline_is_quiet": lambda: True,
    "lost_is_quiet": lambda: True,
    "abort_is_quiet": lambda: True,
    "failed_write_counts": lambda: True,
}


def first_failure(decisions):
    """The first thing that goes wrong in the schedules, or None."""
    dice = random.Random(7)
    for run in range(RUNS_MAX):
        rig = Joined(
            prefill_pages=12, decode_pages=12, decisions=decisions, prefix=Shelf, same_prompts=run % 2 == 0
        )
        try:
            choices = [dice.randrange(3_001) for _ in range(STEPS_MAX)]
            play(rig, choices, more=network_faults if run % 4 == 3 else lambda _rig: [])
            come_home(rig)
        except (AssertionError, InvariantError) as failure:
            return str(failure)
        found = rig.wrong_answers()
        if found:
            return found
    return None


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_decision_is_found(name):
    assert first_failure(wrong(name)) is not None


def test_the_right_ones_are_not():
    dice = random.Random(8)
    for _ in range(10):
        rig = Joined(prefill_pages=12, decode_pages=12, prefix=Shelf)
        play(rig, [dice.randrange(3_001) for _ in range(STEPS_MAX)])
        come_home(rig)
        assert rig.wrong_answers() is None


def test_every_decision_is_in_the_table_or_says_why_not():
    named = {name for name in vars(Decisions) if not name.startswith("_")}
    assert named == set(MUTANTS) | EXEMPT
