"""The page map: whose bytes stand in which slot, from two snapshots of a pool."""

import numpy as np

from kvfence.kv import SEAL_DTYPE, SealKind
from kvfence.replay.page_map import Origin, Owner, map_of_model, map_of_pool
from kvfence.replay.pool_view import Snapshot
from kvfence.replay.scaled import scaled_leak

A, B = 1, 2
OWN, OTHER, EMPTY = Owner.READER, Owner.OTHER, Owner.NOBODY


def snapshot(*pages):
    """Pages of (kind, lease sequence, ordinal, valid tokens, four slots as letters; a dot is empty)."""
    trailers = np.zeros(len(pages), SEAL_DTYPE)
    digests = []
    for page, (kind, sequence, ordinal, valid, slots) in enumerate(pages):
        trailers[page] = (1, kind, ordinal, 5 if sequence else 0, sequence, 1, valid, b"", b"")
        digests.append(tuple(None if letter == "." else letter.encode() for letter in slots))
    return Snapshot(trailers, tuple(digests))


BEFORE = snapshot(
    (SealKind.SEALED, A, 0, 4, "abcd"),
    (SealKind.SEALED, A, 1, 4, "efgh"),
    (SealKind.BLANK, 0, 0, 0, "...."),
    (SealKind.BLANK, 0, 0, 0, "...."),
)


def test_a_leak_is_drawn_slot_by_slot():
    after = snapshot(
        # The placeholder's page, with its unused slots zeroed; its one slot looks like A's first.
        (SealKind.SEALED, B, 0, 1, "a..."),
        (SealKind.UNWRITTEN, B, 1, 0, "efgh"),
        # A partly filled page that was never written, and decode's copy of it with a token of the answer.
        (SealKind.UNWRITTEN, B, 2, 0, "...."),
        (SealKind.OPEN, B, 2, 0, "e.x."),
    )
    drawn = map_of_pool(BEFORE, after, prompt_tokens=10, read_slots=11)
    assert [page.page for page in drawn.pages] == [0, 1, 3]
    assert drawn.slots == (OWN, EMPTY, EMPTY, EMPTY, *[OTHER] * 4, OTHER, EMPTY, OWN, EMPTY)
    assert (drawn.count(OTHER), drawn.count(OWN), drawn.count(EMPTY)) == (5, 2, 4)
    assert (drawn.shown_slots, drawn.origin) == (11, Origin.POOL)


def test_an_honest_request_reads_its_own_alone():
    after = snapshot(
        (SealKind.SEALED, B, 0, 4, "abcd"),  # the same text as A's: the same bytes, written by B's writer
        (SealKind.SEALED, B, 1, 4, "wxyz"),
        (SealKind.OPEN, B, 2, 0, "v..."),
        (SealKind.BLANK, 0, 0, 0, "...."),
    )
    drawn = map_of_pool(BEFORE, after, prompt_tokens=8, read_slots=9)
    assert drawn.count(OTHER) == 0
    assert drawn.count(OWN) == 9


def test_of_a_refused_request_nothing_was_read_and_all_is_shown():
    after = snapshot((SealKind.UNWRITTEN, B, 0, 0, "abcd"), *[(SealKind.BLANK, 0, 0, 0, "....")] * 3)
    drawn = map_of_pool(BEFORE, after, prompt_tokens=4, read_slots=0)
    assert drawn.read_slots == 0
    assert (drawn.shown_slots, drawn.count(OTHER)) == (4, 4)


def test_without_a_new_lease_there_is_no_map():
    assert map_of_pool(BEFORE, BEFORE, prompt_tokens=4, read_slots=4) is None


def test_the_model_is_drawn_as_what_it_is():
    drawn = map_of_model(scaled_leak(4, pages=2))
    assert drawn.slots == (OWN, *[OTHER] * 7)
    assert (drawn.origin, drawn.read_slots, len(drawn.pages)) == (Origin.MODEL, 8, 2)
