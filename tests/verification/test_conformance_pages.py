"""Pages and promises of one node: each law's check fires on the fault and is silent on the healthy order."""

import dataclasses

import pytest
from tests.verification.steps import DECODE, PREFILL, ROUTER, lease, refs, row, step, take

from kvfence.protocol import commands, events
from kvfence.protocol.words import (
    AttemptId,
    Done,
    Failed,
    Failure,
    IntegrityReason,
    Manifest,
    PageRef,
    Peer,
    Role,
)
from kvfence.verification.conformance_decode import DecodePageCheck
from kvfence.verification.conformance_prefill import PrefillPageCheck

ATTEMPT, OTHER = AttemptId(1, 7, 1), Peer("prefill-1", 9)
MANIFEST = Manifest(lease(), PREFILL, 7, 2, b"", 0, 7)
DONE = Done(MANIFEST)
PAGE_TOKENS = 4
OWN = refs(4, 5)

# ------------------------------------------------------------ decode
HELLO = step(events.Hello(PREFILL, Role.PREFILL, 64, 9), commands.SendLowestLive(PREFILL, 1))
RESERVE = step(
    events.Reserve(ROUTER, ATTEMPT, PREFILL, 7, 4, b""),
    commands.StampPages(lease(), refs(1, 2, 3)),
    commands.SendReserved(ROUTER, ATTEMPT, lease(), refs(1, 2)),
)
CLOSED = step(events.Closed(PREFILL, lease(), DONE), commands.VerifySeals(lease(), MANIFEST, refs(1, 2)))
VERIFIED = step(
    events.SealsVerified(lease()),
    commands.StartRow(lease(), ATTEMPT, MANIFEST, refs(1, 2), PageRef(3, 1)),
)
COPIED = step(
    events.TailCopied(lease()), rows=[row(lease(), "RUNNING", "TAIL_COPIED", "RUNNING", "drop_original")]
)
FREED_ORIGINAL = step(events.StepRetired(1), commands.PagesFreed((2,)))
LAUNCHED = step(events.StepLaunched(1, (lease(),)))
RETIRED = step(events.StepRetired(1))


def home(*pages, event=None):
    """The lease comes home with these pages."""
    quiet = row(lease(), "CLOSING", "QUIET", "ABSENT", "free")
    return step(event or events.DrainRequested(), commands.PagesFreed(pages), rows=[quiet])


def test_a_lease_from_its_reservation_to_its_way_home():
    check = DecodePageCheck()
    copied = dataclasses.replace(COPIED, commands=(commands.PagesFreed((2,)),))
    grown = step(events.PageWanted(lease()), commands.StampPages(lease(), refs(2, epoch=2)))
    way = [HELLO, RESERVE, CLOSED, VERIFIED, copied, LAUNCHED, grown, RETIRED, home(1, 3, 2)]
    assert take(check, *way) == []
    again = step(RESERVE.event, commands.StampPages(lease(2), (*refs(1, 3, epoch=2), *refs(2, epoch=3))))
    assert take(check, again) == []


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ([RESERVE, home(1, 2, 3)], "its writer has neither closed nor been cut"),
        ([RESERVE, step(events.Closed(OTHER, lease(), DONE)), home(1, 2, 3)], "its writer has neither"),
        ([RESERVE, step(events.Cut(OTHER)), home(1, 2, 3)], "its writer has neither closed nor been cut"),
        ([RESERVE, step(events.CutUnknown(PREFILL)), home(1, 2, 3)], "its writer has neither closed"),
        ([RESERVE, CLOSED, home(1, 2, 3)], "it is being verified"),
        ([RESERVE, CLOSED, VERIFIED, LAUNCHED, home(1, 2, 3)], "pass 1 is in flight"),
        ([RESERVE, CLOSED, VERIFIED, step(VERIFIED.event, commands.PagesFreed((1,)))], "has not come home"),
    ],
)
def test_a_page_that_is_freed_too_early_is_found(way, why):
    kind, words = take(DecodePageCheck(), *way)[0]
    assert kind == "freed"
    assert why in words


def test_a_cut_of_the_writer_lets_its_pages_go():
    assert take(DecodePageCheck(), RESERVE, step(events.Cut(PREFILL)), home(1, 2, 3)) == []


def test_the_copied_original_waits_for_the_passes_launched_before_the_copy_alone():
    before = [RESERVE, CLOSED, VERIFIED, LAUNCHED]
    later = step(events.StepLaunched(2, (lease(),)))
    assert take(DecodePageCheck(), *before, COPIED, later, FREED_ORIGINAL) == []
    too_early = dataclasses.replace(COPIED, commands=(commands.PagesFreed((2,)),))
    found = take(DecodePageCheck(), *before, too_early)
    assert found == [("freed", "page 2 of lease 3.1 is freed: pass 1 is in flight")]


def test_a_page_that_is_leased_twice_or_under_another_epoch_is_found():
    twice = step(RESERVE.event, commands.StampPages(lease(2), refs(1, epoch=2)))
    found = take(DecodePageCheck(), RESERVE, twice)
    assert found == [("leased", "page 1 is leased to lease 3.2, and lease 3.1 has it")]
    skipped = step(RESERVE.event, commands.StampPages(lease(), refs(5, epoch=2)))
    words = "page 5 is leased under epoch 2, which is not its next"
    assert take(DecodePageCheck(), skipped) == [("leased", words)]


def test_a_free_of_what_nobody_held_and_a_way_home_without_all_pages_are_found():
    free = step(events.StepRetired(1), commands.PagesFreed((1,)))
    assert take(DecodePageCheck(), LAUNCHED, free) == [("freed", "page 1 is freed and was not leased")]
    cut = step(events.Cut(PREFILL))
    found = take(DecodePageCheck(), RESERVE, cut, home(1, 3))
    assert found == [("freed", "lease 3.1 came home without its pages [2]")]


def test_nothing_is_verified_or_started_before_the_contract():
    early = step(events.DrainRequested(), commands.VerifySeals(lease(), MANIFEST, refs(1, 2)))
    words = "lease 3.1 is verified before its writer has closed"
    assert take(DecodePageCheck(), RESERVE, early) == [("contract", words)]
    start = step(events.DrainRequested(), *VERIFIED.commands)
    words = "lease 3.1 starts before it was closed and verified"
    assert take(DecodePageCheck(), RESERVE, CLOSED, start) == [("contract", words)]


def rejected(*poisoned, action="reject_pages"):
    event = events.SealsRejected(lease(), IntegrityReason.SEAL_FOREIGN, poisoned)
    return step(event, rows=[row(lease(), "VERIFYING", "SEALS_BAD", "CLOSING", action)])


def test_a_poisoned_page_waits_for_all_who_could_write_when_it_was_found():
    freed = commands.PagesFreed((1,))
    other = step(events.Hello(OTHER, Role.PREFILL, 64, 9), commands.SendLowestLive(OTHER, 1))
    way = [HELLO, other, RESERVE, CLOSED, rejected(1), home(2, 3)]
    both = [step(events.Cut(PREFILL)), step(events.Cut(OTHER), freed)]
    assert take(DecodePageCheck(), *way, *both) == []
    found = take(DecodePageCheck(), *way, step(events.Cut(PREFILL), freed))
    assert found == [("freed", "page 1 of lease 3.1 is freed: it is poisoned, and 1 writers are not cut")]
    alone = [RESERVE, CLOSED, rejected(1), step(events.Cut(PREFILL), freed)]
    found = take(DecodePageCheck(), *alone)
    words = "page 1 of lease 3.1 is freed: it is poisoned, and its lease has not come home"
    assert found == [("freed", words)]


# ------------------------------------------------------------ prefill
def prefill(*said, sequence=1, own=OWN, cached=0, prefix=(), **facts):
    event = events.Prefill(ROUTER, ATTEMPT, DECODE, lease(sequence), refs(1, 2), (0,) * 7, "")
    start = commands.StartPrefill(lease(sequence), ATTEMPT, (0,) * 7, (*prefix, *own), cached, sequence)
    return step(event, *said, start, peer=PREFILL, **facts)


def post(batch=1, first=0, sources=OWN, event=None):
    targets = refs(*range(1, len(sources) + 1))
    command = commands.PostBatch(lease(), batch, DECODE, first, sources, targets)
    return step(event or events.ChunkComputed(lease(), 7, 0), command, peer=PREFILL)


def closed(outcome=DONE, *, event=None, sequence=1, rows=(), said=()):
    command = commands.SendClosed(DECODE, lease(sequence), outcome)
    return step(event or events.WriteCompleted(lease(), 1), command, *said, rows=rows, peer=PREFILL)


QUIET = row(lease(), "CLOSING", "QUIET", "ABSENT", "give_back")
WRITTEN = step(events.WriteCompleted(lease(), 1), peer=PREFILL)
LOST = step(events.WriteFailed(lease(), 1), peer=PREFILL)
DESTROYED = step(events.ConnectionDestroyed(DECODE), peer=PREFILL)
RENEWED = step(events.Reconnected(DECODE), peer=PREFILL)
COMES_HOME = step(events.DrainRequested(), commands.PagesFreed((4, 5)), rows=[QUIET], peer=PREFILL)


def check_prefill(*steps):
    return take(PrefillPageCheck(PAGE_TOKENS), *steps)


def test_a_prompt_from_its_pages_to_its_promise():
    freed = commands.PagesFreed((4, 5))
    again = prefill(sequence=2, own=refs(4, epoch=2))
    assert check_prefill(prefill(), post(), closed(rows=[QUIET], said=[freed]), again) == []
    assert check_prefill(prefill(), post(), closed(), closed(), COMES_HOME) == []


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ([prefill(), post(), COMES_HOME], "page 4 is freed: batch 1 of lease 3.1 is in flight"),
        ([prefill(), post(), LOST, COMES_HOME], "page 4 is freed: batch 1 of lease 3.1 is in flight"),
        ([prefill(), LAUNCHED, COMES_HOME], "page 4 is freed: pass 1 of lease 3.1 is in flight"),
        ([prefill(), post(), dataclasses.replace(COMES_HOME, rows=())], "lease 3.1 has not come home"),
        ([COMES_HOME], "page 4 is freed: nobody held it"),
    ],
)
def test_a_source_that_is_freed_while_it_is_read_is_found(way, words):
    kind, why = check_prefill(*way)[0]
    assert kind == "freed"
    assert words in why


def test_a_destroyed_connection_reads_nothing_and_may_still_land():
    assert check_prefill(prefill(), post(), LOST, DESTROYED, COMES_HOME) == []
    failed = Failed(Failure.TRANSFER)
    found = check_prefill(prefill(), post(), DESTROYED, closed(failed, event=events.DrainRequested()))
    assert found == [("closed", "lease 3.1 is said to be closed while batch 1 is unproven")]
    renewed = [prefill(), post(), DESTROYED, RENEWED, closed(failed, event=events.DrainRequested())]
    assert check_prefill(*renewed) == []
    dropped = step(events.WriteFailed(lease(), 1, quiet=True), peer=PREFILL)
    assert check_prefill(prefill(), post(), dropped, closed(failed, event=events.DrainRequested())) == []


def test_closed_is_said_when_nothing_can_land_and_always_alike():
    early = closed(event=events.DrainRequested())
    found = check_prefill(prefill(), post(), early)
    assert found == [("closed", "lease 3.1 is said to be closed while batch 1 is posted")]
    found = check_prefill(prefill(), post(), closed(), closed(Failed(Failure.ABORTED)))
    assert found == [("closed", "lease 3.1 was said to be closed with another outcome before")]
    short = Done(dataclasses.replace(MANIFEST, pages=1))
    found = check_prefill(prefill(), post(), closed(short))
    assert found == [("closed", "lease 3.1 is said to be done with 1 pages, of 2")]


def test_nothing_is_computed_or_posted_after_closed():
    refused = closed(Failed(Failure.ABORTED), event=events.Close(DECODE, lease()))
    assert check_prefill(refused, prefill()) == [
        ("closed", "lease 3.1 is computed, and was said to be closed")
    ]
    words = "batch 2 of lease 3.1 is posted, and the lease is not open"
    assert check_prefill(prefill(), post(), closed(), post(batch=2, first=2)) == [("closed", words)]
    assert check_prefill(post(batch=2)) == [("closed", words)]
    alone = dataclasses.replace(prefill(), event=events.DrainRequested())
    assert check_prefill(alone) == [("closed", "lease 3.1 is computed without a Prefill")]


def test_a_batch_posted_twice_or_from_others_pages_is_found():
    words = "batch 2 of lease 3.1 is posted twice, or out of order"
    assert check_prefill(prefill(), post(), post(batch=2)) == [("closed", words)]
    words = "batch 1 of lease 3.1 reads pages that are not its own"
    assert check_prefill(prefill(), post(sources=refs(6, 7))) == [("leased", words)]


def test_pages_of_the_prefix_index_outlive_their_lease_and_are_evicted_unused():
    published = step(events.ChunkComputed(lease(), 7, 0), peer=PREFILL, published={lease(): (4,)})
    kept = dataclasses.replace(COMES_HOME, commands=(commands.PagesFreed((5,)),))
    evicted = step(events.DrainRequested(), commands.PagesFreed((4,)), peer=PREFILL)
    shared = prefill(sequence=2, own=refs(5, epoch=2), cached=PAGE_TOKENS, prefix=refs(4))
    assert check_prefill(prefill(), published, kept, evicted) == []
    assert check_prefill(prefill(), published, kept, shared) == []
    found = check_prefill(prefill(), published, kept, shared, evicted)
    assert found == [("freed", "page 4 is freed: lease 3.2 has not come home")]
    found = check_prefill(prefill(), COMES_HOME, shared)
    assert found == [("leased", "page 4 is used as a prefix, and no sealed page of the index")]
    stolen = dataclasses.replace(published, published={lease(): (9,)})
    found = check_prefill(prefill(), stolen)
    assert found == [("leased", "lease 3.1 leaves pages to the prefix index that it has not")]
    reused = prefill(sequence=2, own=refs(4, epoch=2))
    found = check_prefill(prefill(), published, kept, reused)
    assert found == [("leased", "page 4 is leased to lease 3.2 and was not free")]


def test_own_pages_are_leased_under_their_next_epoch_and_all_come_home():
    assert check_prefill(prefill(own=refs(4, epoch=2))) == [
        ("leased", "page 4 is leased under epoch 2, which is not its next")
    ]
    left = dataclasses.replace(COMES_HOME, commands=(commands.PagesFreed((4,)),))
    assert check_prefill(prefill(), left) == [("freed", "lease 3.1 came home without its pages [5]")]
