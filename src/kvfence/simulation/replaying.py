"""Playing a script again: the same happenings in the same order; what has become impossible is skipped.

It needs neither the seed's draws nor virtual time, so that a script can be shortened and still be played. For
findings about what never came home, what is left over is let run at the end, in calm weather.
"""

from collections.abc import Sequence

from kvfence.protocol import Decisions
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.laws import check_laws
from kvfence.simulation.home import asks_in_vain, not_home
from kvfence.simulation.neighbours import Neighbours
from kvfence.simulation.outcome import NOBODY, Step
from kvfence.simulation.possible import is_possible
from kvfence.simulation.served import all_asks, fresh_asks, fresh_submit, unserved, waits_in_vain
from kvfence.simulation.swarm import Swarm
from kvfence.world import InPlace, Kind, World, make_world
from kvfence.world import happenings as h
from kvfence.world.telling import Moment, perform_and_tell

SETTLING_MAX = 5_000  # happenings after a script
TURN = 100  # happenings, of which one is a timer though something else could happen


def world_of(swarm: Swarm, decisions: Decisions) -> World:
    """The world of a run before anything has happened."""
    return make_world(swarm.world, decisions, all_asks(swarm), InPlace())


def replay(swarm: Swarm, decisions: Decisions, script: Sequence[Step], kind: Kind) -> tuple[Step, ...] | None:
    """Play a script; return the part that was played up to a finding of `kind`, or None without one."""
    world, played = world_of(swarm, decisions), []
    for when_us, happening in script:
        if not is_possible(world, happening):
            continue
        is_vain = kind is Kind.UNSERVED and type(happening) is h.Fire and waits_in_vain(world, happening)
        world.perform(happening)
        played.append((when_us, happening))
        if is_vain:
            return tuple(played)
        if kind is Kind.LAW:
            _find_broken_laws(world)
        if kind is Kind.FENCE and world.catches:
            return tuple(played)
        if any(finding.kind is kind for finding in world.findings):
            return tuple(played)
    if kind is Kind.NOT_HOME and not world.findings and is_stuck(world):
        return tuple(played)
    if kind is Kind.UNSERVED and not world.findings and refuses_fresh(world, swarm):
        return tuple(played)
    return None


def tell(swarm: Swarm, decisions: Decisions, script: Sequence[Step]) -> list[Moment]:
    """Play a script, in words; times are milliseconds."""
    world = world_of(swarm, decisions)
    moments = [
        perform_and_tell(world, happening, f"{when_us / 1_000:.3f}")
        for when_us, happening in script
        if is_possible(world, happening)
    ]
    if not world.findings:
        settle(world)
        _find_broken_laws(world)
        found = [*world.findings, *((Kind.NOT_HOME, NOBODY, what) for what in not_home(world))]
        refused = None if found else refuses_fresh(world, swarm)
        if refused is not None:
            found.append((Kind.UNSERVED, NOBODY, refused))
        words = tuple(f"{kind.value}, {peer.node}: {what}" for kind, peer, what in found)
        if words:
            moments.append(Moment("end", "clients", "clients", "all is calm", found=words))
    return moments


def _find_broken_laws(world: World) -> None:
    for peer, core in world.cores.items():
        try:
            check_laws(core)
        except InvariantError as error:
            world.find(Kind.LAW, peer, str(error))


# ---------------------------------------------------------------- the end
def is_stuck(world: World) -> bool:
    """Let everything run that is left; tell whether something never comes home."""
    settle(world)
    return next(not_home(world), None) is not None


def refuses_fresh(world: World, swarm: Swarm) -> str | None:
    """Let everything run that is left, then send fresh requests; say which is not served."""
    settle(world)
    while not world.findings and (submit := fresh_submit(world, swarm)) is not None:
        world.perform(submit)
        settle(world, is_patient=True)
    fresh = [ask.request for ask in fresh_asks(swarm).values() if ask.request in world.clients]
    return next((what for what in (unserved(world, request) for request in fresh) if what), None)


def settle(world: World, *, is_patient: bool = False) -> None:
    """Calm weather: everybody returns, what can follow follows, timers ring when nothing else is left.

    `is_patient`: then alone; else one rings now and then, for time passes for all.
    """
    for peer in list(world.paused):
        world.perform(h.Resume(peer))
    for peer in list(world.dead):
        world.perform(h.Restart(peer))
    neighbours = Neighbours(world)
    for turn in range(SETTLING_MAX):
        happening = _next(world, neighbours, is_late=turn % TURN == 0 and not is_patient)
        if happening is None or world.findings:
            return
        world.perform(happening)


def _next(world: World, neighbours: Neighbours, *, is_late: bool) -> h.Happening | None:
    """What follows, else what mends, else a timer; `is_late`: a timer first."""
    fires = (h.Fire(*timer) for timer in world.live_timers())
    fire = next((fire for fire in fires if not asks_in_vain(world, fire)), None)
    if is_late and fire is not None:
        return fire
    following: h.Happening | None = next(world.following(), None)
    if following is not None:
        return following
    due, _ = neighbours.tick(0)
    for mended in (*due, *neighbours.renewable()):
        if is_possible(world, mended):
            return mended
    return fire
