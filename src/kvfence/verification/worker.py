"""One worker of a search: expands its part of a level, owns the keys that fall to it.

Rules: a state stays with the worker that made it. Whether its key is new is for the owner of the key to say
(key modulo number of workers), which asks its own set and settles who was first. A path never leaves a
worker: its beginning was made before the work was divided, and is known to all.
"""

import resource
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvfence.verification.edges import Edges
from kvfence.verification.engine import Engine
from kvfence.verification.homing import home_rule
from kvfence.verification.moves import Move
from kvfence.verification.seen import KeySet
from kvfence.verification.walking import Walked, walk_home
from kvfence.world import Finding
from kvfence.world.happenings import Happening

if TYPE_CHECKING:
    from kvfence.verification.layout import State

RAW_MAX = 200_000  # states of a level that are recognised before their key is computed
ROOT = 0xFFFFFFFF
LOOK_EVERY = 1_024  # states, between two looks at the memory
KIB_A_MIB = 1024


def resident_kib() -> int:
    """What this process holds now; where the kernel does not say that, the most that it ever held.

    Pages of files do not count: a forked process has only those that it touched, and is compared with its
    parent.
    """
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (int(resident) - int(shared)) * resource.getpagesize() // 1024


class Worker:
    """Frontier, keys and parents of one process."""

    def __init__(
        self,
        engine: Engine,
        ignored: frozenset[Any],
        memory_mib: int | None = None,
        *,
        keeps_edges: bool = False,
    ) -> None:
        self.engine = engine
        self.edges = Edges(home_rule(engine)) if keeps_edges else None
        self.memory_mib = memory_mib  # of this process; None: no bound
        self._peak_kib = 0
        # Whoever searches in a process that holds other things (a test run, say) has not used that memory.
        self._before_kib = resident_kib()
        self.is_full = False
        self.ignored = ignored  # kinds of findings that do not end the search
        self.number = 0
        self.workers = 1
        self.keys = KeySet()
        self.parents = array("I")
        self.happened = array("I")
        self.moves: list[Move] = []
        self.frontier: list[tuple[int, State]] = []
        self.transitions = 0
        self.found: tuple[int, Move, tuple[Finding, ...]] | None = None
        self._fresh: dict[int, tuple[State, int, Move]] = {}

    def peak_mib(self) -> int:
        """The most that was seen of what this process holds since the search began."""
        self._peak_kib = max(self._peak_kib, resident_kib() - self._before_kib)
        return -(-self._peak_kib // KIB_A_MIB)

    def begin(self) -> None:
        """Put the first state in."""
        start = self.engine.start()
        key = self.engine.key_of(start)
        self.keys.add(key)
        self.frontier = [(self._file(key, start, ROOT, None), start)]

    def divide(self, number: int, workers: int) -> None:
        """Become one of several: each keeps its share of the frontier, and of the keys."""
        self.number, self.workers = number, workers
        if self.memory_mib is not None:
            self.memory_mib //= workers
        self.frontier = self.frontier[number::workers]
        self.transitions = self.transitions if number == 0 else 0
        if self.edges is not None:
            self.edges.divide()

    # ------------------------------------------------------------ one level
    def expand(self) -> list[bytes]:
        """Make all successors of the frontier; return the keys that each owner is to be asked about."""
        engine, fresh, edges = self.engine, self._fresh, self.edges
        enabled, after, key_of = engine.enabled, engine.after, engine.key_of
        raw: dict[State, int] = {}
        for done, (index, state) in enumerate(self.frontier):
            if done % LOOK_EVERY == 0 and self._is_over():
                break
            if edges is not None:
                edges.leave(index)
            for move in enabled(state):
                new, findings = after(state, move)
                self.transitions += 1
                if findings and self.found is None:
                    self._judge(index, move, findings)
                key = raw.get(new)
                if key is None:
                    if len(raw) >= RAW_MAX:
                        raw.clear()
                    key = raw[new] = key_of(new)
                    if key not in fresh:
                        fresh[key] = (new, index, move)
                if edges is not None and new[-1] is state[-1]:
                    edges.add(key, move)
            if self.found is not None:
                break
        shares = [array("Q") for _ in range(self.workers)]
        for key in fresh:
            shares[key % self.workers].append(key)
        return [share.tobytes() for share in shares]

    def _is_over(self) -> bool:
        """A level may be wider than the memory: it is left in the middle then, and the search says so."""
        self.is_full = self.memory_mib is not None and self.peak_mib() >= self.memory_mib
        return self.is_full

    def _judge(self, index: int, move: Move, findings: tuple[Finding, ...]) -> None:
        counted = tuple(finding for finding in findings if finding.kind not in self.ignored)
        if counted:
            self.found = (index, move, counted)

    def decide(self, asked: list[bytes], first: int) -> list[bytes]:
        """As the owner: which keys of each worker are new? Workers are asked in turn, from `first` on."""
        answers = [b""] * len(asked)
        add = self.keys.add
        for turn in range(len(asked)):
            worker = (first + turn) % len(asked)
            answers[worker] = bytes(map(add, array("Q", asked[worker])))
        return answers

    def accept(self, answers: list[bytes]) -> int:
        """Keep what the owners called new as the next frontier; return how many states that is."""
        told = [iter(answer) for answer in answers]
        frontier = []
        workers = self.workers
        for key, (state, parent, move) in self._fresh.items():
            if next(told[key % workers]):
                frontier.append((self._file(key, state, parent, move), state))
        self._fresh.clear()
        self.frontier = frontier
        return len(frontier)

    def _file(self, key: int, state: "State", parent: int, move: Move | None) -> int:
        if self.edges is not None:
            self.edges.file(key, state)
        if move is not None and move.number is None:
            move.number = len(self.moves)
            self.moves.append(move)
        self.parents.append(parent)
        self.happened.append(0 if move is None or move.number is None else move.number)
        return len(self.parents) - 1

    # ------------------------------------------------------------ paths
    def path_to(self, index: int) -> list[Happening]:
        """What happened on the way to a state, from the start on."""
        happenings = []
        while self.parents[index] != ROOT:
            happenings.append(self.moves[self.happened[index]].happening)
            index = self.parents[index]
        return happenings[::-1]

    def walk_home(self, walks_max: int) -> Walked:
        """Walk home from the latest level."""
        rule = home_rule(self.engine)
        return walk_home(self.engine, rule, self.frontier, walks_max // self.workers, self.path_to)

    def counterexample(self) -> tuple[list[Happening], tuple[Finding, ...]] | None:
        """The shortest way to what was found at this level, if anything was."""
        if self.found is None:
            return None
        index, move, findings = self.found
        return [*self.path_to(index), move.happening], findings

    @property
    def stored_bytes(self) -> int:
        """What is kept for good: keys, parents, and edges where they are wanted."""
        edges = 0 if self.edges is None else self.edges.share.bytes
        return self.keys.bytes + self.parents.itemsize * 2 * len(self.parents) + edges
