"""Every happening can be told, and telling changes nothing about it."""

from kvfence.protocol import CORRECT
from kvfence.protocol.words import LeaseId, Peer
from kvfence.world import Ask, InPlace, World, happenings, make_world
from kvfence.world.config import WorldConfig
from kvfence.world.telling import CLIENTS, perform_and_tell, show

ROUTER, PREFILL, DECODE = Peer("router0", 1), Peer("prefill0", 1), Peer("decode0", 1)


def a_world() -> World:
    return make_world(WorldConfig(), CORRECT, {1: Ask(1, "a", (1, 2, 3), 2)}, InPlace())


def follow(world: World):
    while found := [next_one for next_one in world.enabled() if not isinstance(next_one, happenings.Fire)]:
        yield perform_and_tell(world, found[0], "t")


def test_a_request_is_told_from_its_client_to_its_end():
    world = a_world()
    first = perform_and_tell(world, happenings.Submit(ROUTER, 1), "t")
    assert (first.source, first.target, first.is_weather) == (CLIENTS, "router0", True)
    moments = list(follow(world))
    assert moments[0].what == "Reserve r1#1 prefill0 tokens=3 max_tokens=2"
    assert any("lands in p0@1" in moment.what for moment in moments)
    assert moments[-1].said == () or any("ends: End length" in said for m in moments for said in m.said)
    assert not any(moment.found for moment in moments)


def test_weather_is_told_from_lane_to_lane():
    world = a_world()
    world.perform(happenings.Submit(ROUTER, 1))
    told = perform_and_tell(world, happenings.Drop(ROUTER, DECODE), "t")
    assert told.what.startswith("lost: Reserve") and (told.source, told.target) == ("router0", "decode0")
    told = perform_and_tell(world, happenings.Suspect(DECODE, PREFILL), "t")
    assert (told.source, told.target) == ("decode0", "prefill0")
    told = perform_and_tell(world, happenings.CutDone(DECODE, PREFILL), "t")
    assert (told.source, told.target) == ("decode0", "prefill0")
    told = perform_and_tell(world, happenings.Leave(1), "t")
    assert any("request 1 ends" in word for word in told.said)
    told = perform_and_tell(world, happenings.Crash(PREFILL), "t")
    assert (told.source, told.target, told.what) == ("prefill0", "prefill0", "Crash")


def test_words_are_short():
    assert show(LeaseId(1, 4)) == "1.4"
    assert show(Peer("decode0", 2)) == "decode0/2"
