"""What a fair run owes, and how happenings of different states are compared for that.

States that differ in names alone are one state of a search, so a happening may not be recognised by the
names in it. Happenings are therefore taken by classes: what happens, and to which processes, which are never
renamed; no lease, request, page or batch. A run is fair when a class that is possible all the time from
some moment on happens again and again: a node, a wire or a transport that always has something to do does
something. What clients and operators do (to come, to start a dead node, to let a stopped one go on) is owed
by nobody, and neither is that a lost write vanishes.

Time goes on meanwhile. A timer fires without cost only when nothing else is under way, which is no promise
that it can be put off for ever by hellos, say. So a run is not fair either when timers of one kind stay set,
the same ones and never set anew, all the way round, though each of their firings would end the round.
"""

from collections.abc import Collection, Sequence
from typing import Any, cast

from kvfence.protocol.errors import invariant
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import Peer
from kvfence.verification.engine import Engine
from kvfence.verification.forking import fork_core
from kvfence.verification.layout import State
from kvfence.world import Core, World, make_world
from kvfence.world import happenings as h
from kvfence.world.happenings import Happening

Class = tuple[Any, ...]  # what happens, and to which processes
NOT_OWED = frozenset((h.Submit, h.Restart, h.Resume, h.Vanish))
Pending = dict[Class, frozenset[Any]]  # timers that are set, by the class of their firing


def class_of(happening: Any) -> Class:
    """The class of a happening: its kind and its processes, and of a timer its kind as well."""
    kind = type(happening)
    if kind is h.Fire:
        return (kind.__name__, happening.node, happening.timer.kind.value)
    return (kind.__name__, *(part for part in happening if isinstance(part, Peer)))


def is_owed(name: Class) -> bool:
    """Whether a fair run does what is always possible of this class."""
    return name[0] not in {kind.__name__ for kind in NOT_OWED}


class Copying:
    """A stepper that copies a core before it takes an event, so that worlds can be forked."""

    def step(self, core: Core, event: Event) -> tuple[Core, list[Command]]:
        """Step a copy."""
        twin = fork_core(core)
        return twin, twin.step(event)


class Round:
    """A component of free moves, walked through again with true names and true timers.

    `way` leads to its first state. `keys` are those of its states.
    """

    def __init__(self, engine: Engine, way: Sequence[Happening], keys: Collection[int]) -> None:
        self.engine = engine
        self.keys = frozenset(keys)
        self.once: list[Happening] = []  # once round, from its first state back to it
        self._constant: set[Class] | None = None  # kinds of timers that stay set, in what was seen so far
        self._fired: set[Class] = set()
        state, world = engine.start(), _world(engine)
        for happening in way:
            move = next(move for move in engine.enabled(state) if move.happening == happening)
            state = engine.after(state, move)[0]
            world.perform(happening)
        self._go_round(state, world)

    def is_timed(self) -> bool:
        """Whether some timers stay set all the way round, and end it when they fire."""
        return bool((self._constant or set()) & self._fired)

    def _go_round(self, state: State, world: World) -> None:
        engine = self.engine
        first = engine.key_of(state)
        ways: dict[int, list[Happening]] = {first: []}
        queue = [(first, state, world)]
        for key, at, here in queue:
            pending = _pending(here)
            for move in engine.enabled(at):
                new, _ = engine.after(at, move)
                if new[-1] is not at[-1]:
                    continue  # it costs weather
                then = engine.key_of(new)
                if then not in self.keys:
                    self._leaves(move.happening)
                    continue
                there = cast("World", here.fork())
                there.perform(move.happening)
                self._stays(pending, _pending(there))
                if then == first and not self.once:
                    self.once = [*ways[key], move.happening]
                if then not in ways:
                    ways[then] = [*ways[key], move.happening]
                    queue.append((then, new, there))
        invariant(len(ways) == len(self.keys), "every state of a component is reached from its first one")

    def _leaves(self, happening: Happening) -> None:
        if isinstance(happening, h.Fire):
            self._fired.add(class_of(happening))

    def _stays(self, before: Pending, after: Pending) -> None:
        same = {kind for kind, timers in before.items() if after.get(kind) == timers}
        self._constant = same if self._constant is None else self._constant & same


def _world(engine: Engine) -> World:
    """A plain world of the same scope."""
    scope = engine.scope
    return make_world(scope.config, engine.decisions, dict(scope.by_number), Copying())


def _pending(world: World) -> Pending:
    """Timers that are set and meant, each with how often it was set."""
    kinds: dict[Class, set[Any]] = {}
    for (peer, timer), (generation, _) in world.timers.items():
        if world.timer_is_live(peer, timer):
            kinds.setdefault(class_of(h.Fire(peer, timer)), set()).add((timer, generation))
    return {kind: frozenset(timers) for kind, timers in kinds.items()}
