"""Run the killers against mutants: collect once, record which test takes which row, fork for each mutant.

A pytest plugin takes the place of the run loop. First the unmutated run: every killer must pass, and each
lookup of a row is recorded. A test that never looks a row up behaves the same when that row is wrong (tests
are deterministic), so only those that do are run against its mutants, the quickest first, up to the first
failure. Each mutant lives in a forked child, whose death says what became of it.

A child that uses more processor time than `CPU_S_MAX`, or is silent for `WALL_S_MAX`, hangs: that is a kill.
Nothing is undone: children are thrown away.
"""

import contextlib
import gc
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from pathlib import Path
from typing import Any

import pytest

from kvfence.protocol.tables import Table
from tests.mutants.killers import FOLDER, may_kill
from tests.mutants.mutations import Mutation, apply

CPU_S_MAX = 60
WALL_S_MAX = 600
MEMORY_BYTES_MORE = 1 << 29
SAID_CHARS_MAX = 2_000
# How a child ends that could not say what killed its mutant.
RIG_FAILED = 1
OUT_OF_MEMORY = 3
SECOND = "the second killer"
# Without pytest's own terminal (and the options that are its), and without alarms: a child has bounds.
# kvfence brings a plugin of pytest's, so pytest would rewrite it, and warns that it is loaded already.
OPTIONS = (
    "-o addopts=--import-mode=importlib -o timeout=0 -p no:terminal -p no:cacheprovider --capture=no "
    "-W ignore::pytest.PytestAssertRewriteWarning "
    "-p no:looptime_plugin -p no:looptime_chronometers -p no:looptime_timeproxies"
)


@unique
class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    HUNG = "hung"  # a kill, too
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A mutant's fate: by which test, after how many."""

    mutation: Mutation
    fate: Fate
    by: str = ""
    tests_run: int = 0

    @property
    def killer(self) -> str:
        """The first line of what killed it: the test."""
        return self.by.partition("\n")[0]


@dataclass
class Child:
    """A mutant that is being tried."""

    mutation: Mutation
    pid: int
    pipe: int
    since: float = field(default_factory=time.monotonic)
    said: bytes = b""


SecondKiller = Callable[[Mutation], bool | None]


class RigError(Exception):
    """The unmutated run failed, or the runner did: nothing can be said of mutants."""


class Runner:
    """The plugin: tries mutants instead of running the tests.

    `second` is asked about what the tests let live, in the child, where the row is wrong: True kills, None
    says that it cannot tell. It may take its time: a mutant that it does not kill has survived.
    """

    def __init__(
        self,
        mutations: Iterable[Mutation],
        report: Callable[[Verdict], None],
        *,
        jobs: int,
        cpu_s_max: int,
        second: SecondKiller | None,
    ) -> None:
        self.mutations = list(mutations)
        self.report = report
        self.jobs = jobs
        self.cpu_s_max = cpu_s_max
        self.second = second
        self.rows_of: dict[str, set[tuple[Any, Any]]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._is_child = False

    # ------------------------------------------------------------ hooks of pytest
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave files alone in which nothing may kill."""
        return None if may_kill(f"{FOLDER}/{collection_path.name}") else True

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that may kill."""
        items[:] = [item for item in items if may_kill(item.nodeid)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """In a child a failure is a line: pytest's own report of a long traceback takes a second."""
        if not self._is_child or call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
            return None
        said = str(call.excinfo.value)[:SAID_CHARS_MAX]
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", said, call.when)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, in whatever phase of the test."""
        if report.failed:
            self.failed.append(f"{report.nodeid} ({report.when})\n{report.longrepr}")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run everything unmutated, then each mutant in a child."""
        with self._recording():
            for item in session.items:
                self._run_unmutated(item)
        if self.failed or not session.items:
            self.failed[:1] = [f"the unmutated run fails: {said}" for said in self.failed[:1]]
            return True
        gc.collect()
        gc.freeze()  # a child's collector need not copy the parent's pages
        try:
            self._try_all(session.items)
        except RigError as error:
            self.failed.append(str(error))
        return True

    # ------------------------------------------------------------ the unmutated run
    def _run_unmutated(self, item: pytest.Item) -> None:
        self._seen: set[tuple[Any, Any]] = set()
        start = time.perf_counter()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        self.seconds[item.nodeid] = time.perf_counter() - start
        self.rows_of[item.nodeid] = self._seen

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        find = Table.find

        def recording(table: Table[Any, Any], state: Any, fact: Any) -> Any:
            self._seen.add((state, fact))
            return find(table, state, fact)

        Table.find = recording  # type: ignore[method-assign]
        try:
            yield
        finally:
            Table.find = find  # type: ignore[method-assign]

    # ------------------------------------------------------------ mutants
    def _try_all(self, items: list[pytest.Item]) -> None:
        waiting = list(reversed(self.mutations))
        with selectors.DefaultSelector() as selector:
            while waiting or selector.get_map():
                while waiting and len(selector.get_map()) < self.jobs:
                    mutation = waiting.pop()
                    child = self._fork(mutation, self._killers_of(mutation, items))
                    selector.register(child.pipe, selectors.EVENT_READ, child)
                for key, _ in selector.select(timeout=1):
                    if not self._hear(key.data):
                        selector.unregister(key.data.pipe)
                        self.report(_verdict(key.data))
                for key in list(selector.get_map().values()):
                    if time.monotonic() - key.data.since > WALL_S_MAX:
                        os.kill(key.data.pid, signal.SIGKILL)

    def _killers_of(self, mutation: Mutation, items: list[pytest.Item]) -> list[pytest.Item]:
        takers = [item for item in items if mutation.key in self.rows_of[item.nodeid]]
        return sorted(takers, key=lambda item: self.seconds[item.nodeid])

    def _fork(self, mutation: Mutation, killers: list[pytest.Item]) -> Child:
        reader, writer = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            os.close(writer)
            return Child(mutation, pid, reader)
        status = RIG_FAILED
        try:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a dying child says is its exit code
            _bound(self.cpu_s_max)
            self._is_child = True
            apply(mutation)
            self._run_mutant(mutation, killers, writer)
            status = 0
        except MemoryError:
            status = OUT_OF_MEMORY
        finally:
            os._exit(status)

    def _run_mutant(self, mutation: Mutation, killers: list[pytest.Item], pipe: int) -> None:
        tried = 0
        for item in killers:
            tried += 1
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                break
        _tell(pipe, self.failed[0] if self.failed else "", tried)
        if not self.failed and self.second is not None:
            _unbound()
            if self.second(mutation):
                _tell(pipe, SECOND, tried)

    def _hear(self, child: Child) -> bool:
        """Read what the child says; False when it is gone."""
        came = os.read(child.pipe, 65_536)
        child.said += came
        return bool(came)


def _bound(cpu_s_max: int) -> None:
    """A mutant may loop for ever, and collect things while it does."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bounds = {resource.RLIMIT_CPU: cpu_s_max, resource.RLIMIT_AS: now + MEMORY_BYTES_MORE}
    for what, most in bounds.items():
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def _unbound() -> None:
    """The second killer has bounds of its own."""
    for what in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
        most = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most, most))


def _tell(pipe: int, by: str, tried: int) -> None:
    os.write(pipe, json.dumps({"by": by, "tests": tried}).encode() + b"\n")


def _verdict(child: Child) -> Verdict:
    """What the child said last stands, however it ended; else its end speaks."""
    os.close(child.pipe)
    _, status = os.waitpid(child.pid, 0)
    if child.said:
        words = json.loads(child.said.splitlines()[-1])
        fate = Fate.KILLED if words["by"] else Fate.SURVIVED
        return Verdict(child.mutation, fate, words["by"], words["tests"])
    code = os.waitstatus_to_exitcode(status)
    if code == RIG_FAILED:
        raise RigError(f"the runner itself failed with {child.mutation}")
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return Verdict(child.mutation, Fate.HUNG)
    # What breaks even pytest's own reporting (no memory left for it, say) is noticed, too.
    return Verdict(child.mutation, Fate.KILLED, by=f"the process's end ({code})")


def try_mutations(
    mutations: Iterable[Mutation],
    report: Callable[[Verdict], None],
    *,
    jobs: int,
    where: str = FOLDER,
    cpu_s_max: int = CPU_S_MAX,
    second: SecondKiller | None = None,
) -> list[Verdict]:
    """Try each mutation with the killers below `where`; RigError when the unmutated run fails."""
    verdicts: list[Verdict] = []

    def take(verdict: Verdict) -> None:
        verdicts.append(verdict)
        report(verdict)

    runner = Runner(mutations, take, jobs=jobs, cpu_s_max=cpu_s_max, second=second)
    pytest.main([where, *OPTIONS.split()], plugins=[runner])
    if len(verdicts) != len(runner.mutations):
        why = runner.failed[0] if runner.failed else "the killers could not be collected"
        raise RigError(f"mutants cannot be judged: {why}")
    return verdicts
