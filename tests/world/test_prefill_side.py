"""A prefill node in a world: chunks, seals, prefix hits, and each wrong one found."""

import pytest
from tests.world.play import DECODE, PREFILL, ask, follow, play, submit_all, world_of

from kvfence.protocol import Decisions
from kvfence.protocol.words import EndReason
from kvfence.world import Kind, happenings

ASKS = (ask(1, 5, 2, "a"), ask(2, 5, 2, "a", start=1), ask(3, 5, 2, "b", start=1))


def test_a_second_request_with_the_same_beginning_reads_the_first_one_s_pages():
    world = world_of(*ASKS, has_prefix_cache=True)
    world.perform(happenings.Submit(world.homes.get(1, next(iter(world.routers()))), 1))
    follow(world)
    world.perform(happenings.Submit(world.homes[1], 2))
    while not world.jobs:
        world.perform(next(iter(world.enabled())))
    assert next(iter(world.jobs.values())).computed == 4
    follow(world)
    assert world.findings == [] and world.clients[2].delivered == 2


def test_another_tenant_does_not():
    world = world_of(*ASKS, has_prefix_cache=True)
    router = next(iter(world.routers()))
    world.perform(happenings.Submit(router, 1))
    follow(world)
    world.perform(happenings.Submit(router, 3))
    while not world.jobs:
        world.perform(next(iter(world.enabled())))
    assert next(iter(world.jobs.values())).computed == 0


class OneDomain(Decisions):
    def sharing_domain(self, tenant):
        return "all"


class Unpinned(Decisions):
    def pins_match(self):
        return False


class NotZeroed(Decisions):
    def zeroes_unused_slots(self):
        return False


class PublishedEarly(Decisions):
    def publishes(self, *, sealed):
        return True


@pytest.mark.parametrize(
    ("decisions", "kind"),
    [
        (OneDomain(), Kind.FOREIGN_READ),
        (NotZeroed(), Kind.DIRTY_PAGE),
        (PublishedEarly(), Kind.FOREIGN_SOURCE),
        (Decisions(), None),
    ],
)
def test_each_wrong_decision_is_found_by_some_seed(decisions, kind):
    found = set()
    for seed in range(30):
        more = (ask(4, 6, 1, "c"), ask(5, 5, 2, "a", start=1), ask(6, 3, 1, "d"), ask(7, 7, 1, "a", start=1))
        world = world_of(*ASKS, *more, decisions=decisions, has_prefix_cache=True, prefill_pages=5, routers=2)
        submit_all(world)
        play(world, seed, laws=type(decisions) is Decisions)
        found |= {finding.kind for finding in world.findings}
    assert (kind in found) if kind else found == set()


@pytest.mark.parametrize(("decisions", "is_found"), [(Unpinned(), True), (Decisions(), False)])
def test_a_match_that_nobody_pins_is_evicted_under_its_reader(decisions, is_found):
    world = world_of(*ASKS, decisions=decisions, has_prefix_cache=True, prefill_pages=5, routers=2)
    first, second = world.routers()
    world.perform(happenings.Submit(first, 1))
    follow(world)
    for router, request in ((first, 2), (second, 3)):
        world.perform(happenings.Submit(router, request))
        follow(world, happenings.Deliver, happenings.Launch, happenings.Retire)
    follow(world)
    assert bool(world.findings) is is_found


def test_a_chunk_whose_pages_are_not_its_own_any_more_is_not_computed():
    world = submit_all(world_of(ask(1, 5)))
    follow(world, happenings.Deliver)
    (job,) = world.jobs.values()
    world.cores[PREFILL].ledger.owner[job.table[0].page] = 99
    world.perform(happenings.Launch(PREFILL))
    assert world.catches == {"guard": 1} and not world.jobs


def test_closed_follows_the_bytes():
    world = submit_all(world_of(ask(1, 5)))
    follow(world, happenings.Deliver, happenings.Launch, happenings.Retire)
    assert (PREFILL, DECODE) not in world.wires
    follow(world, happenings.Land)
    assert (PREFILL, DECODE) not in world.wires
    follow(world)
    assert world.clients[1].end.reason is EndReason.LENGTH
