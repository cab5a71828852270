"""A breadth-first search, level by level, in this process or in several.

Rules: no state of a level is expanded before all of the level before it, so the first thing found is one of
fewest steps. The first levels are searched here; when they are wide enough the process forks, so that every
worker knows all that was learnt so far. A search ends when nothing new is left (it closed), when something
was found, or at a limit, and it says which.
"""

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from time import monotonic
from typing import Any

from kvfence.protocol import Decisions
from kvfence.protocol.tables import DECODE, PREFILL, ROUTER, Table
from kvfence.verification.engine import Engine
from kvfence.verification.remembered import Taken
from kvfence.verification.scopes import Scope
from kvfence.verification.worker import Worker, peak_mib
from kvfence.world import Finding
from kvfence.world.happenings import Happening

WIDE = 200  # states of a level, for each worker, from which on the work is divided
END_SECONDS = 5  # for a worker to end by itself


@unique
class Why(Enum):
    """Why a search ended."""

    CLOSED = "closed"  # every state that can be reached was visited
    FOUND = "found"
    DEPTH = "depth"  # the scope says how deep it goes
    STATES = "states"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a search stops before it is done. `memory_mib` is for all its processes together."""

    states_max: int | None = None
    memory_mib: int = 4096
    wide: int = WIDE  # no limit of the search: from which width on several processes are worth it


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A shortest run to something that must never happen."""

    scope: Scope
    happenings: tuple[Happening, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a search did."""

    scope: Scope
    why: Why
    states: int
    transitions: int
    depth: int
    performed: int  # happenings that the cores performed; the others were remembered
    taken: frozenset[Taken]
    seconds: float
    stored_bytes: int
    peak_mib: int
    counterexample: Counterexample | None

    @property
    def rows_taken(self) -> int:
        """How many rows of the three tables were taken (what is illegal has no row)."""
        tables: dict[str, Table[Any, Any]] = {
            "RouterCore": ROUTER,
            "PrefillCore": PREFILL,
            "DecodeCore": DECODE,
        }
        return sum((state, fact) in tables[core].rows for core, state, fact in self.taken)


@dataclass(frozen=True, slots=True)
class Level:
    """How far a search has come."""

    depth: int
    states: int
    frontier: int
    transitions: int
    seconds: float


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
    progress: Progress = _silent,
) -> Report:
    """Search a scope. `ignored` are kinds of findings that do not end it."""
    return _Search(scope, decisions, limits or Limits(), jobs, symmetric, ignored, progress).run()


class _Search:
    def __init__(
        self,
        scope: Scope,
        decisions: Decisions,
        limits: Limits,
        jobs: int,
        symmetric: bool,  # noqa: FBT001 -- only `search` calls it
        ignored: frozenset[Any],
        progress: Progress,
    ) -> None:
        self.scope = scope
        self.limits = limits
        self.jobs = jobs
        self.progress = progress
        self.started = monotonic()
        self.depth = 0
        engine = Engine(scope, decisions, symmetric=symmetric)
        self.worker = Worker(engine, ignored, self.limits.memory_mib)
        self.others: _Crew | None = None

    def run(self) -> Report:
        self.worker.begin()
        states, width = 1, 1
        why: Why | None = None
        try:
            while why is None:
                if self.jobs > 1 and self.others is None and width >= self.limits.wide * self.jobs:
                    self.others = _Crew(self.worker, self.jobs)
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
        if self._peak_mib() > limits.memory_mib:
            return Why.MEMORY
        return None

    def _peak_mib(self) -> int:
        return peak_mib() + (0 if self.others is None else self.others.peak_mib)

    def _report(self, why: Why, states: int) -> Report:
        crew = self.others
        worker = self.worker
        found = worker.counterexample() if crew is None else crew.found
        last = _Tally.of(worker) if crew is None else crew.tally()
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
        )


# ---------------------------------------------------------------- several processes
@dataclass(frozen=True, slots=True)
class _Tally:
    performed: int
    taken: frozenset[Taken]
    stored_bytes: int

    @classmethod
    def of(cls, worker: Worker) -> "_Tally":
        engine = worker.engine
        return cls(engine.performed, frozenset(engine.taken), worker.stored_bytes)


class _Crew:
    """Forked workers. All of them speak with this process alone, level by level."""

    def __init__(self, worker: Worker, jobs: int) -> None:
        context = multiprocessing.get_context("fork")
        self.pipes = []
        self.processes = []
        self.transitions = worker.transitions
        self.peak_mib = 0
        self.is_full = False
        self.found: tuple[list[Happening], tuple[Finding, ...]] | None = None
        for number in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(worker, number, jobs, theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def level(self, depth: int) -> int:
        """Let all workers do one level; return how many states are new."""
        self._say("expand")
        asked = [pipe.recv() for pipe in self.pipes]
        for number, pipe in enumerate(self.pipes):
            pipe.send((depth % len(self.pipes), [shares[number] for shares in asked]))
        decided = [pipe.recv() for pipe in self.pipes]
        for number, pipe in enumerate(self.pipes):
            pipe.send([answers[number] for answers in decided])
        told = [pipe.recv() for pipe in self.pipes]
        self.transitions = sum(one[1] for one in told)
        self.peak_mib = sum(one[2] for one in told)
        self.is_full = any(one[4] for one in told)
        found = [one[3] for one in told if one[3] is not None]
        self.found = found[0] if found else None
        return sum(one[0] for one in told)

    def tally(self) -> _Tally:
        """What all workers have together."""
        self._say("tally")
        tallies: Sequence[_Tally] = [pipe.recv() for pipe in self.pipes]
        return _Tally(
            sum(tally.performed for tally in tallies),
            frozenset().union(*(tally.taken for tally in tallies)),
            sum(tally.stored_bytes for tally in tallies),
        )

    def dismiss(self) -> None:
        """End the workers."""
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():  # a closed pipe alone says nothing: later workers hold its other end too
                pipe.send("end")
            pipe.close()
        for process in self.processes:
            process.join(END_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def _say(self, word: str) -> None:
        for pipe in self.pipes:
            pipe.send(word)


def _serve(worker: Worker, number: int, jobs: int, pipe: Any) -> None:
    """Work as one of several until told to end."""
    worker.divide(number, jobs)
    try:
        while (word := pipe.recv()) != "end":
            if word == "tally":
                pipe.send(_Tally.of(worker))
                continue
            pipe.send(worker.expand())
            first, asked = pipe.recv()
            pipe.send(worker.decide(asked, first))
            new = worker.accept(pipe.recv())
            pipe.send((new, worker.transitions, peak_mib(), worker.counterexample(), worker.is_full))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # whoever asked is gone, or was interrupted and says so itself
