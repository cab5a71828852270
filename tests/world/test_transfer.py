"""One-sided writes in a world: torn, late, stopped, orphaned, and what proves that nothing more will come."""

import pytest
from tests.world.play import DECODE, PREFILL, ROUTER, ask, follow, submit_all, world_of

from kvfence.protocol import Decisions
from kvfence.protocol.words import EndReason, TimerKind
from kvfence.world import Kind, Link, Piece, happenings

QUICK = (happenings.Deliver, happenings.Launch, happenings.Retire)


def writing(**sizes):
    """A world in which the prompt of request 1 is computed and its first batches are on their way."""
    return follow(submit_all(world_of(ask(1, 5), ask(2, 5), **sizes)), *QUICK)


def lands(world):
    return [one for one in world.enabled() if isinstance(one, happenings.Land)]


@pytest.mark.parametrize(("piece", "pieces"), [(Piece.PAGE, 1), (Piece.HALF, 2), (Piece.SLOT, 3)])
def test_a_page_lands_in_pieces_and_its_trailer_last(piece, pieces):
    world = writing(piece=piece)
    land = lands(world)[0]
    target = world.writes[tuple(land)].targets[0].page
    for left in reversed(range(pieces)):
        assert world.pools[DECODE][target].seal.digest is None
        world.perform(land)
        assert (world.pools[DECODE][target].seal.digest is None) is (left > 0)
    assert [slot.position for slot in world.pools[DECODE][target].slots] == [0, 1]


def test_completion_is_heard_after_the_last_page_alone():
    world = writing()
    land = lands(world)[0]
    assert happenings.Complete(*land) not in list(world.enabled())
    world.perform(land)
    assert happenings.Complete(*land) in list(world.enabled())


def test_a_loud_failure_leaves_an_orphan_that_lands_in_quarantine():
    world = writing()
    land = lands(world)[0]
    world.perform(happenings.FailWrite(*land, quiet=False))
    assert world.links[PREFILL, DECODE] is Link.FALLING
    follow(world, happenings.Deliver, happenings.Destroyed)
    assert world.writes[tuple(land)].is_orphan and world.writes[tuple(land)].buffered is not None
    world.perform(land)
    assert world.findings == []


def test_a_quiet_failure_leaves_nothing():
    world = writing()
    land = lands(world)[0]
    world.perform(happenings.FailWrite(*land, quiet=True))
    assert tuple(land) not in world.writes and world.links[PREFILL, DECODE] is Link.UP


def test_a_stopped_batch_is_given_up_between_two_pages():
    world = writing()
    timer = next(t for _, t in world.live_timers() if t.kind is TimerKind.BATCH)
    world.perform(happenings.Fire(PREFILL, timer))
    assert happenings.Stop(PREFILL, *timer.key) in list(world.enabled())
    assert happenings.Land(PREFILL, *timer.key) not in list(world.enabled())


def test_a_new_connection_ends_what_was_posted_on_the_old_one():
    world = writing()
    land = lands(world)[0]
    world.perform(happenings.FailWrite(*land, quiet=False))
    follow(world, happenings.Destroyed)
    assert world.writes
    world.perform(happenings.Reconnect(PREFILL, DECODE))
    assert not world.writes and world.links[PREFILL, DECODE] is Link.UP
    follow(world)
    assert world.is_home() and world.findings == []


def test_a_cut_revokes_what_a_dead_writer_left():
    world = writing()
    world.perform(happenings.Crash(PREFILL))
    assert all(write.is_orphan for write in world.writes.values())
    for observer in (ROUTER, DECODE):
        world.perform(happenings.Suspect(observer, PREFILL))
    world.perform(happenings.CutDone(DECODE, PREFILL))
    assert not world.writes
    follow(world)
    assert [client.end for client in world.clients.values()] == [None, None]  # they wait for a prefill node


class FreeOnAbort(Decisions):
    def abort_is_quiet(self):
        return True


@pytest.mark.parametrize(("decisions", "kinds"), [(Decisions(), []), (FreeOnAbort(), [Kind.LATE_WRITE])])
def test_a_write_into_a_page_that_its_lease_has_no_longer_is_found(decisions, kinds):
    world = follow(submit_all(world_of(ask(1, 5), decisions=decisions)), *QUICK)
    world.perform(happenings.Leave(1))
    follow(world, happenings.Deliver)
    world.perform(lands(world)[0])
    assert [finding.kind for finding in world.findings] == kinds
    assert world.clients[1].end.reason is EndReason.CLIENT_GONE


class SourcesFreedEarly(Decisions):
    def sources_are_quiet(self, steps, batches_reading):
        return steps == 0


def test_a_write_that_reads_another_lease_s_content_is_found():
    world = follow(
        submit_all(world_of(ask(1, 5, 1), ask(2, 5, 1), decisions=SourcesFreedEarly(), prefill_pages=3)),
        *QUICK,
    )
    late = lands(world)[0]
    world.perform(happenings.Leave(1))
    follow(world, *QUICK)
    world.perform(late)
    assert Kind.FOREIGN_SOURCE in {finding.kind for finding in world.findings}


def test_a_cut_leaves_a_connection_that_is_being_torn_down_to_its_end():
    world = writing()
    world.perform(happenings.FailWrite(*lands(world)[0], quiet=False))
    assert world.links[PREFILL, DECODE] is Link.FALLING
    world.perform(happenings.Suspect(DECODE, PREFILL))
    world.perform(happenings.CutDone(DECODE, PREFILL))
    assert happenings.Destroyed(PREFILL, DECODE) in list(world.enabled())
