"""Controls on real processes: `kvfence serve` with a fault, or with none, and `kvfence check` against it.

A fault is tried with the layers off that would stop it, and with sizes at which it has its chance. What the
check says is read from its JSON lines while they grow: the first finding that counts ends it. Where nothing
was found, the deployment's trace says whether the fault did anything that its core would not have done.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tests.check.controls import HARD, KEYS, Played
from tests.check.engine_sizes import EXPOSING, SIZES, SMALL, scenarios_for
from tests.e2e.deployment import DIES_WITH_THE_TESTS, Deployment

from kvfence.faults import CATALOGUE, SWITCHES, Layer
from kvfence.report import Answered, AnyEvent, FindingMade, ScenarioEnded, Verdict
from kvfence.report.exit_codes import ExitCode
from kvfence.verification import check_trace

PAGES_LAYERS = (Layer.MANIFEST, Layer.SEAL, Layer.GUARD)
LIMIT_SECONDS = 420.0
LOOK_SECONDS = 0.2
WHOLE = frozenset((ExitCode.CLEAN, ExitCode.FINDINGS, ExitCode.INCONCLUSIVE))
END_SECONDS = 20.0


def serve_flags(name: str) -> tuple[str, ...]:
    """How `kvfence serve` is started for a fault: sizes, the fault, and without the layers that stop it."""
    caught_by = CATALOGUE[name].caught_by
    off = [layer.value for layer in SWITCHES if layer in caught_by or layer in PAGES_LAYERS]
    without = [word for layer in off for word in ("--unsafe-without", layer)]
    fault = ("--unsafe-fault", name, "--i-understand-this-leaks-data")
    return (*SIZES.get(name, SMALL), *fault, *without)


def counts_for(name: str) -> frozenset[Verdict]:
    """The verdicts that find a fault."""
    return HARD | {Verdict.EXPOSED} if CATALOGUE[name].harm in EXPOSING else HARD


def check_fault(name: str, *, seed: int, limit_s: float = LIMIT_SECONDS, keep: Path | None = None) -> Played:
    """Serve with a fault, and check until it is found, everything that could see it was tried, or too late.

    `keep` is a directory that is given the run's files, for whoever asks why.
    """
    with home() as here:
        trace = here / "trace.jsonl"
        with Deployment(here / "run", *serve_flags(name), "--trace", str(trace)) as deployment:
            lines = here / "events.jsonl"
            played = check_once(
                deployment.url,
                lines,
                seed,
                only=scenarios_for(name),
                counts=counts_for(name),
                limit_s=limit_s,
            )
            logs = deployment.logs()
        if played.scenario is None:
            played = msgspec.structs.replace(played, moved=moved_in(trace))
        if keep is not None:
            _keep(keep / f"{name.replace('/', '.')}.{seed}", lines, logs)
    return played


def check_once(
    url: str,
    lines: Path,
    seed: int,
    *,
    profile: str = "standard",
    only: tuple[str, ...] = (),
    counts: frozenset[Verdict] = HARD,
    limit_s: float = LIMIT_SECONDS,
    ends_early: bool = True,
) -> Played:
    """Check a deployment, its events into `lines`, until a finding counts, it has ended, or time is over.

    Raises RuntimeError where the check said nothing, or ended by a fault of its own.
    """
    command = ["-m", "kvfence", "check", f"{url}/v1", "--profile", profile, "--seed", str(seed)]
    command += [word for name in KEYS for word in ("--key-env", name)]
    command += [word for name in only for word in ("--only", name)]
    command += ["--two-tenants", "--own-server", "--jsonl", str(lines)]
    watch, tail, until_s = Watch(seed, counts), Tail(lines), time.monotonic() + limit_s
    with _checking(command, lines.with_suffix(".said")) as process:
        while True:
            has_ended = process.poll() is not None  # asked first: what it wrote before is read after
            for event in tail.more():
                watch.take(event)
            if has_ended or (ends_early and watch.found) or time.monotonic() > until_s:
                break
            time.sleep(LOOK_SECONDS)
    is_whole = has_ended and process.returncode in WHOLE
    if watch.found is None and (watch.events == 0 or (has_ended and not is_whole)):
        said = lines.with_suffix(".said").read_text(errors="replace")
        raise RuntimeError(f"the check did not come to its end (exit {process.returncode}): {said}")
    return watch.played(limit_s=None if has_ended else limit_s)


@contextmanager
def home() -> Iterator[Path]:
    """A short-lived directory with a short name: sockets stand in it."""
    here = Path(tempfile.mkdtemp(prefix="kvf-"))
    try:
        yield here
    finally:
        shutil.rmtree(here)


@contextmanager
def _checking(command: list[str], said: Path) -> Iterator[subprocess.Popen]:
    """`kvfence check` in a process group of its own, ended on leaving: asked to first, then by force."""
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", DIES_WITH_THE_TESTS, *command],
            env={**os.environ, **KEYS},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for number in (signal.SIGINT, signal.SIGKILL):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(END_SECONDS)


class Tail:
    """Reads the whole lines that a growing file has got since the last look."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self._decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)

    def more(self) -> list[AnyEvent]:
        """The events since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        return [self._decoder.decode(line) for line in whole.splitlines()]


@dataclass
class Watch:
    """What a run found first, and after how much."""

    seed: int
    counts: frozenset[Verdict]
    events: int = 0
    requests: int = 0
    at_s: float = 0.0
    codes: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    found: ScenarioEnded | None = None
    requests_to_find: int = 0

    def take(self, event: AnyEvent) -> None:
        """Count it."""
        self.events += 1
        self.at_s = max(self.at_s, getattr(event, "at_s", 0.0))
        self.requests += isinstance(event, Answered)
        if isinstance(event, FindingMade):
            self.codes.append(event.finding.code)
        if isinstance(event, ScenarioEnded):
            self.ended[event.scenario] = event.verdict.value
            if self.found is None and event.verdict in self.counts:
                self.found, self.requests_to_find = event, self.requests

    def played(self, *, limit_s: float | None = None) -> Played:
        """What it came to. `limit_s`: it was ended there, and had not found anything."""
        found = self.found
        return Played(
            seed=self.seed,
            scenario=None if found is None else found.scenario,
            verdict=None if found is None else found.verdict.value,
            codes=tuple(self.codes),
            requests=self.requests if found is None else self.requests_to_find,
            seconds=round(self.at_s if found is None else found.at_s, 3),
            ended=self.ended,
            limit_s=limit_s,
        )


def moved_in(trace: Path) -> dict[str, int]:
    """Where a deployment's trace leaves the path of the shipped protocol: kinds of violations, with counts.

    A fault that a core rules by shows here as soon as it has changed a decision; one of the engine's own
    (prefix pages, block tables, memory) never does.
    """
    return dict(Counter(one.kind.value for one in check_trace([trace]).violations))


def _keep(to: Path, lines: Path, logs: str) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for file in (lines, lines.with_suffix(".said")):
        if file.exists():
            shutil.copy(file, to)
    (to / "logs").write_text(logs, encoding="utf-8")
