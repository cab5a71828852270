"""What `kvfence watch` does with its flags: one target, its state, its metrics.

Rules it keeps: what is wrong with flags and files is said before the first request; the state is stored after
each look; it ends with 1 when a leak was seen, with 130 when it was interrupted.
"""

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from kvfence import __version__
from kvfence.check.credentials import Redactor
from kvfence.check.profile_file import read_profile
from kvfence.check.scenarios import SCENARIOS
from kvfence.check.target import Target, simple_target
from kvfence.check.watch import Watch, ordinary
from kvfence.check.watch_metrics import MetricsServer
from kvfence.check.watch_state import FORMAT, WatchState, exposition
from kvfence.cli.consoles import output_console
from kvfence.cli.recorder import Recorder
from kvfence.protocol.errors import OperatorError
from kvfence.report import RunStarted
from kvfence.report.atomic import write_atomically
from kvfence.report.exit_codes import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchFlags:
    """The flags of the command, as they were given."""

    url: str | None
    key_names: tuple[str, ...]
    has_two_tenants: bool
    targets: Path | None
    model: str | None
    every_minutes: float
    listen: str
    state: Path | None
    jsonl: Path | None
    alpha: float


def run_watch(flags: WatchFlags) -> int:
    """Watch until a leak is seen or somebody interrupts; return the exit code."""
    redactor = Redactor()
    target = target_of(flags, redactor)
    state = stored_state(flags.state, target.shown, flags.alpha)
    host, port = address_of(flags.listen)
    scenarios = ordinary(tuple(SCENARIOS.values()))
    console = output_console()
    with (
        MetricsServer(host, port) as metrics,
        Recorder(console=console, jsonl=flags.jsonl, is_long=True) as recorder,
    ):

        def changed(now: WatchState) -> None:
            metrics.text = exposition(now, scenarios=len(scenarios))
            if flags.state is not None:
                write_atomically(flags.state, msgspec.json.format(msgspec.json.encode(now)).decode() + "\n")

        recorder.take(_started(target))
        console.print(f"watching {target.shown}; metrics on http://{host}:{metrics.port}/metrics")
        watch = Watch(
            target=target,
            scenarios=scenarios,
            state=state,
            period_s=flags.every_minutes * 60,
            emit=recorder.take,
            redactor=redactor,
            changed=changed,
        )
        try:
            asyncio.run(_for_ever(watch, console))
        except (KeyboardInterrupt, asyncio.CancelledError):
            return int(ExitCode.FINDINGS if state.stopped else ExitCode.INTERRUPTED)
    return int(ExitCode.FINDINGS)


async def _for_ever(watch: Watch, console: Console) -> None:
    """Watch; once a leak was seen, keep the metrics up until somebody looks."""
    await watch.go()
    console.print(f"stopped: {watch.state.stopped}; the metrics stay until this is interrupted", style="bold")
    await asyncio.Event().wait()


def _started(target: Target) -> RunStarted:
    return RunStarted(
        tool="watch",
        version=__version__,
        run="watch",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        targets=(target.shown,),
    )


def target_of(flags: WatchFlags, redactor: Redactor) -> Target:
    """Return the one target. Raises OperatorError."""
    if (flags.url is None) == (flags.targets is None):
        raise OperatorError("name one URL, or a TOML profile with one target (--targets), and not both")
    if flags.targets is None:
        return simple_target(
            flags.url or "",
            key_names=flags.key_names,
            environ=os.environ,
            redactor=redactor,
            model=flags.model,
            has_two_tenants=flags.has_two_tenants,
        )
    if flags.key_names or flags.has_two_tenants or flags.model:
        raise OperatorError(
            "keys, tenants and models stand in the profile: leave out --key-env, --two-tenants and --model"
        )
    targets = read_profile(flags.targets, environ=os.environ, redactor=redactor)
    if len(targets) != 1:
        raise OperatorError(
            f"{flags.targets} names {len(targets)} targets: a watch has one; start one watch for each"
        )
    return targets[0]


def stored_state(path: Path | None, target: str, alpha: float) -> WatchState:
    """Return the state that a file holds, or a new one. Raises OperatorError for a file of another watch."""
    if path is None or not path.exists():
        return WatchState(target=target, alpha=alpha)
    try:
        state = msgspec.json.decode(path.read_bytes(), type=WatchState)
    except (OSError, msgspec.DecodeError) as error:
        raise OperatorError(f"{path} holds no state of a watch: {error}; name another file") from error
    if state.format != FORMAT:
        raise OperatorError(f"{path} is from a newer kvfence (format {state.format}): use that one")
    if (state.target, state.alpha) != (target, alpha):
        raise OperatorError(
            f"{path} is of a watch of {state.target} with --alpha {state.alpha:g}: name another file"
        )
    if state.stopped is not None:
        raise OperatorError(
            f"{path}: that watch was stopped ({state.stopped}); when it is mended, begin with a new file"
        )
    return state


def address_of(words: str) -> tuple[str, int]:
    """Split HOST:PORT. Raises OperatorError."""
    host, colon, port = words.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65_536):
        raise OperatorError(f"--listen {words}: give HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)
