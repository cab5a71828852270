"""A decode node in a world: hand-overs are verified, rows guarded, and each wrong step is found."""

import pytest
from tests.world.play import DECODE, ROUTER, ask, follow, play, submit_all, world_of

from kvfence.protocol import Decisions, DecodeCore, DecodeFact
from kvfence.protocol.words import EndReason, IntegrityReason
from kvfence.world import Kind, happenings

QUICK = (happenings.Deliver, happenings.Launch, happenings.Retire, happenings.Land, happenings.Complete)


def lease_twice(core, event):
    """A decode node that does not ask whether it knows the attempt."""
    core._fire_absent(event.attempt, DecodeFact.RESERVE_FITS, event)


@pytest.mark.parametrize("leases_twice", [False, True])
def test_two_leases_of_one_attempt_are_found_and_an_answer_said_again_is_not(leases_twice, monkeypatch):
    world = submit_all(world_of(ask(1)))
    if leases_twice:
        monkeypatch.setattr(DecodeCore, "_on_reserve", lease_twice)
    world.perform(happenings.Repeat(ROUTER, DECODE))
    assert world.findings == []
    world.perform(happenings.Deliver(ROUTER, DECODE))
    kinds = [finding.kind for finding in world.findings]
    assert kinds == ([Kind.TWO_LEASES] if leases_twice else [])
    assert len(world.wires[DECODE, ROUTER]) == 2, "each of them is answered"


class Unguarded(Decisions):
    def guards_steps(self):
        return False


def running(*asks, **sizes):
    """A world in which request 1 is a row on decode, with nothing launched."""
    world = submit_all(world_of(*(asks or (ask(1, 5, 4),)), **sizes))
    while not world.rows:
        world.perform(next(one for one in world.enabled() if not isinstance(one, happenings.Fire)))
    return world


def test_a_page_with_another_trailer_fails_the_row_at_the_guard():
    world = running()
    pool, table = world.pools[DECODE], next(iter(world.rows.values())).table
    page = pool[table[0].page]
    pool[table[0].page] = page._replace(seal=page.seal._replace(epoch=page.seal.epoch + 1))
    follow(world)
    assert world.clients[1].end.integrity is IntegrityReason.GUARD_SEAL and world.catches == {"guard": 1}


def test_a_page_that_nobody_has_written_fails_the_row_at_the_guard_and_is_not_set_apart():
    world = running()
    pool, table = world.pools[DECODE], next(iter(world.rows.values())).table
    page = pool[table[0].page]
    pool[table[0].page] = page._replace(seal=page.seal._replace(digest=None))
    follow(world)
    assert world.clients[1].end.integrity is IntegrityReason.GUARD_SEAL and world.catches == {"guard": 1}
    assert not world.cores[DECODE].poisoned and world.is_home()


def test_without_the_guard_the_oracle_alone_sees_foreign_content():
    world = running(decisions=Unguarded())
    pool, table = world.pools[DECODE], next(iter(world.rows.values())).table
    page = pool[table[0].page]
    pool[table[0].page] = page._replace(slots=(page.slots[0]._replace(request=9), page.slots[1]))
    follow(world)
    assert {finding.kind for finding in world.findings} == {Kind.FOREIGN_READ} and world.catches == {}


def test_a_torn_page_is_refused_at_the_seal():
    world = submit_all(world_of(ask(1, 5)))
    while not world.verifies:
        world.perform(next(one for one in world.enabled() if not isinstance(one, happenings.Fire)))
    pool, command = world.pools[DECODE], next(iter(world.verifies.values()))
    page = pool[command.pages[0].page]
    pool[command.pages[0].page] = page._replace(slots=(page.slots[0], None))
    follow(world)
    assert world.clients[1].end.integrity is IntegrityReason.SEAL_TORN and world.catches == {"seal": 1}
    assert world.findings == []


@pytest.mark.parametrize("is_leased", [True, False])
def test_a_verification_of_pages_that_are_leased_no_more_is_found(is_leased):
    world = submit_all(world_of(ask(1, 5)))
    while not world.verifies:
        world.perform(next(one for one in world.enabled() if not isinstance(one, happenings.Fire)))
    if not is_leased:
        ledger, refs = world.cores[DECODE].ledger, next(iter(world.verifies.values())).pages
        ledger.close(refs)
        ledger.free(refs)
    world.perform(next(one for one in world.enabled() if isinstance(one, happenings.Verify)))
    assert any("is verified in" in finding.what for finding in world.findings) is not is_leased


class Shifted(Unguarded):
    def table_row(self, row, rows):
        return (row + 1) % rows


class PageZero(Unguarded):
    def padding_page(self, reserved):
        return 0


class NotZeroed(Unguarded):
    def zeroes_added_pages(self):
        return False


class FreedUnderStep(Decisions):
    def may_free(self, steps, *, writer_is_quiet):
        return writer_is_quiet


def kinds_of(decisions, seeds=12):
    found = set()
    for seed in range(seeds):
        world = world_of(ask(1, 5, 6), ask(2, 3, 4), ask(3, 2, 5), decisions=decisions, decode_pages=8)
        submit_all(world)
        play(world, seed, laws=type(decisions) is Unguarded)
        found |= {finding.kind for finding in world.findings}
    return found


@pytest.mark.parametrize(
    ("decisions", "kind"),
    [
        (Shifted(), Kind.FOREIGN_READ),
        (PageZero(), Kind.PADDING_WRITE),
        (NotZeroed(), Kind.DIRTY_PAGE),
    ],
)
def test_each_wrong_step_is_found_and_the_right_one_is_silent(decisions, kind):
    assert kind in kinds_of(decisions)
    assert kinds_of(Unguarded()) == set()


def test_a_step_that_outlives_its_pages_is_found():
    world = running(ask(1, 5, 4), decisions=FreedUnderStep())
    world.perform(happenings.Launch(DECODE))
    world.perform(happenings.Leave(1))
    follow(world, happenings.Deliver)
    world.perform(happenings.Retire(DECODE))
    assert Kind.LATE_STEP in {finding.kind for finding in world.findings}


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_step_into_a_page_that_is_sealed_is_found(is_sealed):
    world = running(ask(1, 5, 4))
    row = next(iter(world.rows.values()))
    if is_sealed:
        world.cores[DECODE].ledger.seal(row.table[-1:])
    world.perform(happenings.Launch(DECODE))
    world.perform(happenings.Retire(DECODE))
    assert (Kind.LATE_STEP in {finding.kind for finding in world.findings}) is is_sealed


def test_a_row_of_a_client_that_left_is_stopped_and_its_step_retires_first():
    world = running()
    world.perform(happenings.Launch(DECODE))
    world.perform(happenings.Leave(1))
    follow(world, happenings.Deliver)
    assert not world.rows and not world.is_home()
    follow(world)
    assert world.is_home() and world.findings == [] and world.clients[1].end.reason is EndReason.CLIENT_GONE
