"""A breadth-first search, level by level, in this process or in several.

Rules: no state of a level is expanded before all of the level before it, so the first thing found is one of
fewest steps. The first levels are searched here; when they are wide enough the process forks, so that every
worker knows all that was learnt so far. A search ends when nothing new is left (it closed), when something
was found, or at a limit, and it says which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from kvfence.protocol import Decisions
from kvfence.verification.crew import Crew, Tally
from kvfence.verification.engine import Engine
from kvfence.verification.homing import judge
from kvfence.verification.outcome import Counterexample, Homing, Level, Report, Walks, Why
from kvfence.verification.scopes import Scope
from kvfence.verification.walking import LOST
from kvfence.verification.worker import Worker
from kvfence.world import Finding, Kind
from kvfence.world.happenings import Happening

WIDE = 200  # states of a level, for each worker, from which on the work is divided


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a search stops before it is done. `memory_mib` is for all its processes together.

    Memory counts from the beginning of the search: what a process held before is not the search's.
    """

    states_max: int | None = None
    memory_mib: int = 4096
    walks_max: int = 2_000  # home, from the last layer of a scope that does not close
    wide: int = WIDE  # no limit of the search: from which width on several processes are worth it


Progress = Callable[[Level], None]


def _silent(_level: Level) -> None:
    """Show nothing."""


def search(
    scope: Scope,
    decisions: Decisions,
    *,
    limits: Limits | None = None,
    jobs: int = 1,
    symmetric: bool = True,
    ignored: frozenset[Any] = frozenset(),
    ways_home: bool = False,
    progress: Progress = _silent,
) -> Report:
    """Search a scope. `ignored` are kinds of findings that do not end it; `ways_home` asks for these too."""
    search_ = _Search(scope, decisions, limits or Limits(), jobs, symmetric, ignored, ways_home, progress)
    return search_.run()


class _Search:
    def __init__(
        self,
        scope: Scope,
        decisions: Decisions,
        limits: Limits,
        jobs: int,
        symmetric: bool,  # noqa: FBT001 -- only `search` calls it
        ignored: frozenset[Any],
        ways_home: bool,  # noqa: FBT001
        progress: Progress,
    ) -> None:
        self.scope = scope
        self.limits = limits
        self.jobs = jobs
        self.progress = progress
        self.started = monotonic()
        self.depth = 0
        engine = Engine(scope, decisions, symmetric=symmetric)
        self.ways_home = ways_home
        keeps_edges = ways_home and scope.depth is None
        self.worker = Worker(engine, ignored, self.limits.memory_mib, keeps_edges=keeps_edges)
        self.others: Crew | None = None

    def run(self) -> Report:
        self.worker.begin()
        states, width = 1, 1
        why: Why | None = None
        try:
            while why is None:
                if self.jobs > 1 and self.others is None and width >= self.limits.wide * self.jobs:
                    self.others = Crew(self.worker, self.jobs)
                width = self._level()
                states += width
                why = self._why_end(states, width)
                if why is not Why.FOUND:
                    self.depth += 1
                seconds = monotonic() - self.started
                self.progress(Level(self.depth, states, width, self._transitions(), seconds))
            return self._report(why, states)
        finally:
            if self.others is not None:
                self.others.dismiss()

    def _level(self) -> int:
        if self.others is not None:
            return self.others.level(self.depth)
        shares = self.worker.expand()
        if self.worker.found is not None:
            return 0
        return self.worker.accept(self.worker.decide(shares, 0))

    def _transitions(self) -> int:
        return self.worker.transitions if self.others is None else self.others.transitions

    def _why_end(self, states: int, width: int) -> Why | None:
        limits = self.limits
        found = self.worker.found is not None if self.others is None else self.others.found is not None
        if found:
            return Why.FOUND
        if self.worker.is_full if self.others is None else self.others.is_full:
            return Why.MEMORY
        if width == 0:
            return Why.CLOSED
        if self.scope.depth is not None and self.depth + 1 >= self.scope.depth:
            return Why.DEPTH
        if limits.states_max is not None and states >= limits.states_max:
            return Why.STATES
        if self._peak_mib() >= limits.memory_mib:
            return Why.MEMORY
        return None

    def _peak_mib(self) -> int:
        return self.worker.peak_mib() + (0 if self.others is None else self.others.peak_mib)

    def _report(self, why: Why, states: int) -> Report:
        crew = self.others
        worker = self.worker
        found = worker.counterexample() if crew is None else crew.found
        last = Tally.of(worker) if crew is None else crew.tally()
        homing = self._homing() if self.ways_home and why is Why.CLOSED else None
        walks = self._walks() if self.ways_home and why is Why.DEPTH else None
        return Report(
            scope=self.scope,
            why=why,
            states=states,
            transitions=self._transitions(),
            depth=self.depth,
            performed=last.performed,
            taken=last.taken,
            seconds=monotonic() - self.started,
            stored_bytes=last.stored_bytes,
            peak_mib=self._peak_mib(),
            counterexample=None
            if found is None
            else Counterexample(scope=self.scope, happenings=tuple(found[0]), findings=found[1]),
            homing=homing,
            walks=walks,
        )

    # ------------------------------------------------------------ the way home
    def _homing(self) -> Homing | None:
        worker, crew = self.worker, self.others
        if worker.edges is None:
            return None
        own = worker.edges.share
        if crew is None:
            return judge(worker.engine, [own], lambda _worker, index: worker.path_to(index))

        def path_to(number: int, index: int) -> list[Happening]:
            return worker.path_to(index) if number == 0 else crew.path_to(number - 1, index)

        return judge(worker.engine, [own, *crew.shares()], path_to)

    def _walks(self) -> Walks:
        crew = self.others
        most = self.limits.walks_max
        walked = [self.worker.walk_home(most)] if crew is None else crew.walk_home(most)
        lost = [one.lost for one in walked if one.lost is not None]
        finding = Finding(Kind.NOT_HOME, self.worker.engine.first_node(), LOST)
        return Walks(
            states=sum(one.states for one in walked),
            walked=sum(one.walked for one in walked),
            longest=max(one.longest for one in walked),
            lost=Counterexample(scope=self.scope, happenings=tuple(lost[0]), findings=(finding,))
            if lost
            else None,
        )
