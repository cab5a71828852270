"""A small world for the tests of the simulation's parts."""

from kvfence.protocol import CORRECT, Decisions
from kvfence.protocol.words import Peer
from kvfence.world import Ask, InPlace, World, happenings, make_world
from kvfence.world.config import WorldConfig

ROUTER, PREFILL, DECODE = Peer("router0", 1), Peer("prefill0", 1), Peer("decode0", 1)


def a_world(decisions: Decisions = CORRECT, **sizes) -> World:
    """Two requests that nobody has submitted yet."""
    asks = {1: Ask(1, "a", (1, 2, 3), 2), 2: Ask(2, "b", (4, 5, 6), 2)}
    return make_world(WorldConfig(**sizes), decisions, asks, InPlace())


def submit(world: World, request: int = 1) -> None:
    """Let a client come."""
    world.perform(happenings.Submit(ROUTER, request))


def until(world: World, kind: type) -> happenings.Happening:
    """Let everything follow, without timers, until something of that kind can; return it unperformed."""
    for _ in range(200):
        found = list(world.following())
        for happening in found:
            if type(happening) is kind:
                return happening
        world.perform(found[0])
    raise AssertionError(f"no {kind.__name__} in sight")


def through(world: World) -> None:
    """Let everything follow, without timers, to the end."""
    while found := next(world.following(), None):
        world.perform(found)
