"""Several processes that search together, as one process speaks with them.

Rules: workers are forked, so each knows all that was learnt before. They do levels in step and speak with the
process that forked them alone. What they are asked for is a word, with what belongs to it.
"""

import multiprocessing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.protocol.errors import unreachable
from kvfence.verification.edges import Share
from kvfence.verification.remembered import Taken
from kvfence.verification.walking import Walked
from kvfence.verification.worker import Worker
from kvfence.world.happenings import Happening

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvfence.world import Finding

END_SECONDS = 5  # for a worker to end by itself


@dataclass(frozen=True, slots=True)
class Tally:
    """What workers have, one or several together."""

    performed: int
    taken: frozenset[Taken]
    stored_bytes: int

    @classmethod
    def of(cls, worker: Worker) -> "Tally":
        """That of one worker."""
        engine = worker.engine
        return cls(engine.performed, frozenset(engine.taken), worker.stored_bytes)


class Crew:
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
        self._say(("expand", None))
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

    def tally(self) -> Tally:
        """What all workers have together."""
        tallies: Sequence[Tally] = self._ask("tally")
        return Tally(
            sum(tally.performed for tally in tallies),
            frozenset().union(*(tally.taken for tally in tallies)),
            sum(tally.stored_bytes for tally in tallies),
        )

    def shares(self) -> list[Share]:
        """The edges that each of them kept."""
        shares: list[Share] = self._ask("edges")
        return shares

    def path_to(self, worker: int, index: int) -> list[Happening]:
        """What happened on the way to a state of one of them."""
        pipe = self.pipes[worker]
        pipe.send(("path", index))
        path: list[Happening] = pipe.recv()
        return path

    def walk_home(self, walks_max: int) -> list[Walked]:
        """Let each walk home from its part of the latest level."""
        walked: list[Walked] = self._ask("walk", walks_max)
        return walked

    def dismiss(self) -> None:
        """End the workers."""
        for pipe, process in zip(self.pipes, self.processes, strict=True):
            if process.is_alive():  # a closed pipe alone says nothing: later workers hold its other end too
                pipe.send(("end", None))
            pipe.close()
        for process in self.processes:
            process.join(END_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()

    def _ask(self, word: str, about: Any = None) -> list[Any]:
        self._say((word, about))
        return [pipe.recv() for pipe in self.pipes]

    def _say(self, said: tuple[str, Any]) -> None:
        for pipe in self.pipes:
            pipe.send(said)


def _serve(worker: Worker, number: int, jobs: int, pipe: Any) -> None:
    """Work as one of several until told to end."""
    worker.divide(number, jobs)
    try:
        while (said := pipe.recv())[0] != "end":
            if said[0] == "expand":
                _expand(worker, pipe)
            else:
                pipe.send(_answer(worker, *said))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return  # whoever asked is gone, or was interrupted and says so itself


def _expand(worker: Worker, pipe: Any) -> None:
    pipe.send(worker.expand())
    first, asked = pipe.recv()
    pipe.send(worker.decide(asked, first))
    new = worker.accept(pipe.recv())
    pipe.send((new, worker.transitions, worker.peak_mib(), worker.counterexample(), worker.is_full))


def _answer(worker: Worker, word: str, about: Any) -> Any:
    match word:
        case "tally":
            return Tally.of(worker)
        case "edges":
            return None if worker.edges is None else worker.edges.share
        case "path":
            return worker.path_to(about)
        case "walk":
            return worker.walk_home(about)
    return unreachable(f"nobody asks a worker for {word}")
