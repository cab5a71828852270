"""Where requests land: estimated from one tenant's repeats, pinned where a router's header works."""

import random
from dataclasses import replace

import pytest
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.to_fake import client_to, fake_target
from tests.check.virtual import run

from kvfence.check.coresidence import (
    CoResidence,
    estimate,
    lower_bound,
    nodes_in,
    settle,
    together,
    unseen,
)
from kvfence.check.probing import Probing
from kvfence.check.reply import Reply
from kvfence.report import Noted


class Several:
    """Some fakes behind a router that draws a node for each request, unless a header names it."""

    def __init__(self, count, *, header=None, seed=4, **setup):
        self.nodes = [FakeServer(Setup(**setup)) for _ in range(count)]
        self.rng = random.Random(seed)
        self.header = header

    async def __call__(self, scope, receive, send):
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        pinned = headers.get(self.header.lower()) if self.header else None
        node = self.rng.randrange(len(self.nodes)) if pinned is None else int(pinned)
        await self.nodes[node].app(scope, receive, send)


def probing_of(app, *, target=None):
    said = []
    target = target or fake_target("a")
    client = client_to(app, target)
    return Probing(client=client, target=target, emit=said.append, rng=random.Random(7), began_s=0.0), said


def settled(app, **settings):
    probing, said = probing_of(app, **settings)

    async def go():
        found = await settle(probing)
        await probing.client.aclose()
        return found

    return run(go()), probing, said


def notes(said):
    return [event.text for event in said if isinstance(event, Noted)]


def test_one_node_is_always_met():
    found, _, said = settled(Several(1))
    assert (found.share, found.rounds, found.hits) == (1.0, 4, 4)
    assert notes(said) == []
    assert "4 of 4 repeats of one tenant were cached (at least 47%, at 95 %)" in said[0].how


def test_several_nodes_are_met_now_and_then():
    found, _, said = settled(Several(3))
    assert found.rounds == 10
    assert 0.1 <= found.share < 0.7
    assert found.pinned_by is None
    (note,) = notes(said)
    assert f"meet on one of them in {found.share:.0%} of cases" in note


@pytest.mark.parametrize("header", ["X-SMG-Target-Worker", "X-data-parallel-rank"])
def test_a_known_routers_header_pins(header):
    found, probing, said = settled(Several(3, header=header))
    assert found.share == 1.0
    assert header.lower() in found.pinned_by.lower() or "data-parallel" in found.pinned_by
    assert probing.client.manner.headers == {header: "0"}
    (note,) = notes(said)
    assert note.startswith("all requests go to one node of about ")


def test_a_header_that_changes_nothing_is_not_kept():
    _, probing, _ = settled(Several(3, header="x-other"))
    assert probing.client.manner.headers == {}


def test_a_users_own_pin_is_left_alone():
    target = fake_target("a", pin={"x-node": "1"})
    found, probing, _ = settled(Several(3, header="x-node"), target=target)
    assert found.share == 1.0
    assert probing.client.manner.headers == {}


@pytest.mark.parametrize(
    ("setup", "said"),
    [({"prefix_cache": False, "shows_cached": True}, "unknown"), ({"shows_cached": False}, "do not count")],
)
def test_without_hits_nothing_is_known(setup, said):
    found, _, events = settled(Several(1, **setup))
    assert found.share is None
    assert found.at_least is None
    assert said in events[0].how


def test_an_estimate_draws_new_text_each_round():
    async def go():
        probing, _ = probing_of(Several(1))
        return await estimate(probing, rounds=3), await estimate(probing, rounds=3)

    one, other = run(go())
    assert together(one, other) == CoResidence(rounds=6, hits=6, has_counts=True)


@pytest.mark.parametrize(
    ("hits", "rounds", "bound"), [(4, 4, 0.4729), (12, 12, 0.7791), (1, 2, 0.0253), (6, 12, 0.2453)]
)
def test_the_lower_bound_is_clopper_and_pearsons(hits, rounds, bound):
    assert lower_bound(hits, rounds) == pytest.approx(bound, abs=2e-4)


def test_the_lower_bound_holds_as_often_as_it_says():
    rng = random.Random(11)
    bounds = {hits: lower_bound(hits, 12) for hits in range(1, 13)}
    draws = [sum(rng.random() < 0.6 for _ in range(12)) for _ in range(2_000)]
    too_high = sum(bounds.get(hits, 0.0) > 0.6 for hits in draws)
    assert too_high / len(draws) <= 0.06


def answered(name, value):
    return Reply(status=200, headers=((name, value),))


def test_names_of_nodes_are_read_from_answers():
    assert nodes_in(
        [answered("X-Served-By", "n1"), answered("x-served-by", "n2"), answered("x-served-by", "n1")]
    ) == {
        "n1",
        "n2",
    }
    assert nodes_in([answered("x-served-by", str(number)) for number in range(4)]) == frozenset(), (
        "names of requests"
    )
    assert nodes_in([answered("x-request-id", "n1")]) == frozenset()


def test_nodes_of_the_profile_that_nobody_met():
    target = fake_target("a", nodes=("http://n1/v1", "http://n2/v1", "http://n3/v1"))
    found = CoResidence(rounds=4, hits=4, has_counts=True, seen=frozenset({"n1"}))
    assert unseen(target, found) == "2 of 3 nodes of the profile went unseen"
    assert unseen(target, replace(found, seen=frozenset("abc"))) is None
    assert unseen(fake_target("a"), found) is None
