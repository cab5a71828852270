"""Worlds for tests: small ones, and a player that picks what happens next by seed."""

from random import Random

from kvfence.protocol import Decisions
from kvfence.protocol.laws import check_laws
from kvfence.protocol.words import Peer
from kvfence.world import Ask, InPlace, World, WorldConfig, happenings, make_world, world_config

ROUTER, PREFILL, DECODE = Peer("router0", 1), Peer("prefill0", 1), Peer("decode0", 1)


def ask(
    request: int, tokens: int = 3, max_tokens: int = 3, tenant: str | None = None, start: int | None = None
):
    """A request with a prompt of its own, or one that begins like that of request `start`."""
    first = (request if start is None else start) * 100
    return Ask(request, tenant or f"tenant{request}", tuple(range(first, first + tokens)), max_tokens)


def world_of(*asks: Ask, decisions: Decisions | None = None, **sizes: object) -> World:
    base = WorldConfig(**{"prefill_pages": 5, "decode_pages": 8, **sizes})
    config = world_config(base=base)
    return make_world(config, decisions or Decisions(), {a.request: a for a in asks}, InPlace())


def submit_all(world: World) -> World:
    """Submit every request, to one router after the other."""
    routers = list(world.routers())
    for turn, request in enumerate(world.asks):
        world.perform(happenings.Submit(routers[turn % len(routers)], request))
    return world


def follow(world: World, *kinds: type) -> World:
    """Perform the first enabled happening of these kinds, until there is none."""
    wanted = kinds or (
        happenings.Deliver,
        happenings.Land,
        happenings.Complete,
        happenings.Stop,
        happenings.Verify,
        happenings.Launch,
        happenings.Retire,
        happenings.CutDone,
        happenings.Destroyed,
    )
    while (found := next((one for one in world.enabled() if isinstance(one, wanted)), None)) is not None:
        world.perform(found)
    return world


def play(world: World, seed: int, *, laws: bool = True, steps_max: int = 3_000) -> World:
    """Perform what a seed picks; timers fire only when nothing else can happen. `laws`: they are checked throughout."""
    rng = Random(seed)
    for _ in range(steps_max):
        everything = list(world.enabled())
        ready = [one for one in everything if not isinstance(one, happenings.Fire)] or everything
        if not ready or (world.is_home() and not world.wires):
            return world
        world.perform(rng.choice(ready))
        if world.findings and not laws:
            return world
        for core in world.cores.values() if laws else ():
            check_laws(core)
    raise AssertionError(f"nothing came to an end in {steps_max} steps")
