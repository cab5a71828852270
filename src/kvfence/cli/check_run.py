"""What `kvfence check` does with its flags: targets, one run over them, and its reports.

Rules it keeps:
- Everything that can be wrong with flags and files is said before the first request.
- An interrupted run keeps its JSON lines, and says how to go on; reports are written of what there is.
- The exit code is judged from the events, after the baseline has accepted what it accepts.
"""

import asyncio
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from kvfence import __version__
from kvfence.check.capability import CredentialsRefused, TargetUnreachable
from kvfence.check.checking import Wishes, check_target, for_one_of_several
from kvfence.check.credentials import Redactor
from kvfence.check.evidence import Vault, check_recipient
from kvfence.check.plan import check_names
from kvfence.check.profile_file import read_profile
from kvfence.check.profiles import profile_named
from kvfence.check.resume import Resumed, check_same_profile, check_same_target, resumed_from
from kvfence.check.scenario import Hazard
from kvfence.check.scenarios import SCENARIOS
from kvfence.check.target import Target, simple_target
from kvfence.cli.check_options import Replay, limits_of, price_of, replay_of
from kvfence.cli.check_view import print_plan
from kvfence.cli.consoles import output_console
from kvfence.cli.recorder import Recorder
from kvfence.protocol.errors import OperatorError
from kvfence.report import Noted, RunEnded, RunStarted, Severity
from kvfence.report.atomic import check_places
from kvfence.report.exit_codes import Ending, ExitCode, OnInconclusive, ending_of
from kvfence.report.formats import Format
from kvfence.report.jsonl import read_events

SEEDS = 1 << 32
DEFAULT_PROFILE = "quick"  # as the flag has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of the command, as they were given."""

    url: str | None
    profile: str
    hours: float | None
    key_names: tuple[str, ...]
    has_two_tenants: bool
    targets: Path | None
    model: str | None
    allowed: tuple[str, ...]
    only: tuple[str, ...]
    is_plan_only: bool
    budget: list[str]
    price: str | None
    seed: int | None
    replay: str | None
    resume: Path | None
    is_own_server: bool
    request_timeout_s: float | None
    jsonl: Path | None
    outputs: Mapping[Format, Path]
    evidence: str
    evidence_to: str | None
    evidence_days: int
    baseline: Path | None
    fail_on: Severity
    on_inconclusive: OnInconclusive


def run_check(flags: Flags) -> int:
    """Check what the flags name; return the exit code."""
    redactor = Redactor()
    targets = targets_of(flags, os.environ, redactor)
    wishes = wishes_of(flags)
    if wishes.resumed is not None:
        check_same_target(wishes.resumed, targets)
    check_names(wishes.only, SCENARIOS.values())
    check_places(flags.outputs.values())
    events = Path(flags.resume) if flags.resume else flags.jsonl
    with Recorder(
        console=output_console(),
        jsonl=events,
        goes_on=flags.resume is not None,
        baseline=flags.baseline,
    ) as recorder:
        try:
            ending = asyncio.run(_check_all(targets, wishes, flags, recorder, redactor))
        except (KeyboardInterrupt, asyncio.CancelledError):
            ending = Ending(ExitCode.INTERRUPTED, _how_to_go_on(events))
        is_over = ending.code is not ExitCode.INTERRUPTED or events is None
        if is_over and not flags.is_plan_only:
            recorder.take(
                RunEnded(at_s=recorder.last_s, exit_code=ending.code, why=ending.why, used=recorder.used)
            )
    if not flags.is_plan_only:
        recorder.report(flags.outputs, on_inconclusive=flags.on_inconclusive, fail_on=flags.fail_on)
    elif ending.code is not ExitCode.CLEAN:
        Console(stderr=True).print(f"kvfence: {ending.why}", highlight=False, soft_wrap=True)
    return int(ending.code)


async def _check_all(
    targets: tuple[Target, ...], wishes: Wishes, flags: Flags, recorder: Recorder, redactor: Redactor
) -> Ending:
    """Check one target after another, and judge the whole."""
    if wishes.resumed is None and not flags.is_plan_only:
        recorder.take(
            RunStarted(
                tool="check",
                version=__version__,
                run=wishes.run_id,
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                targets=tuple(target.shown for target in targets),
                seed=wishes.seed,
                profile=wishes.profile.name,
                limits=tuple(wishes.limits_of(target).told for target in targets),
            )
        )
    gone: list[str] = []
    for target in targets:
        emit = recorder.take if len(targets) == 1 else for_one_of_several(recorder.take, target)
        try:
            await check_target(
                target,
                wishes,
                SCENARIOS.values(),
                emit,
                redactor=redactor,
                show_plan=lambda plan, limits, price: print_plan(recorder.console, plan, limits, price),
            )
        except (TargetUnreachable, CredentialsRefused) as error:
            gone.append(str(error))
            if len(targets) > 1:  # of one target the ending says it
                recorder.take(Noted(at_s=recorder.last_s, text=str(error), is_warning=True))
    if gone:
        return Ending(ExitCode.UNREACHABLE, "; ".join(gone))
    if flags.is_plan_only:
        return Ending(ExitCode.CLEAN, "a plan only")
    return ending_of(recorder.events, flags.fail_on, flags.on_inconclusive)


def targets_of(flags: Flags, environ: Mapping[str, str], redactor: Redactor) -> tuple[Target, ...]:
    """Return the targets: those of the profile, or the one that the URL names. Raises OperatorError."""
    if (flags.url is None) == (flags.targets is None):
        raise OperatorError("name one URL, or a TOML profile of targets with --targets FILE, and not both")
    if flags.targets is not None:
        if flags.key_names or flags.model:
            raise OperatorError("keys and models stand in the profile: leave out --key-env and --model")
        targets = read_profile(flags.targets, environ=environ, redactor=redactor)
    else:
        targets = (
            simple_target(
                flags.url or "",
                key_names=flags.key_names,
                environ=environ,
                redactor=redactor,
                model=flags.model,
                has_two_tenants=flags.has_two_tenants,
            ),
        )
    if flags.resume is not None and len(targets) > 1:
        raise OperatorError(
            "a run over several targets cannot be gone on with: check the others by their URL"
        )
    if flags.is_own_server:
        targets = tuple(replace(target, is_own_server=True) for target in targets)
    if flags.request_timeout_s is not None:
        targets = tuple(replace(target, request_timeout_s=flags.request_timeout_s) for target in targets)
    return targets


def wishes_of(flags: Flags) -> Wishes:
    """Return what the run shall do. Raises OperatorError."""
    resumed = None if flags.resume is None else resumed_from(read_events(flags.resume).events)
    replay = None if flags.replay is None else replay_of(flags.replay)
    _check_together(flags, resumed, replay)
    price = price_of(flags.price)
    profile = resumed.started.profile if resumed else replay.profile if replay else flags.profile
    seed = resumed.started.seed if resumed else replay.seed if replay else flags.seed
    return Wishes(
        profile=profile_named(profile or flags.profile, flags.hours),
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        run_id=resumed.started.run if resumed else secrets.token_hex(6),
        allowed=frozenset(_hazard_named(name) for name in flags.allowed),
        only=(replay.scenario,) if replay else flags.only,
        limits=limits_of(flags.budget, price),
        price=price,
        is_plan_only=flags.is_plan_only,
        vault=_vault_of(flags),
        resumed=resumed,
    )


def _check_together(flags: Flags, resumed: Resumed | None, replay: Replay | None) -> None:
    if resumed and replay:
        raise OperatorError("--resume goes on with a run, --replay begins a part of one again: choose")
    if resumed and flags.jsonl is not None:
        raise OperatorError("--resume writes on in its own file: leave out --jsonl")
    if resumed:
        check_same_profile(resumed, flags.profile, DEFAULT_PROFILE)
    if (resumed or replay) and flags.seed is not None:
        raise OperatorError("the seed is that of the earlier run: leave out --seed")


def _hazard_named(name: str) -> Hazard:
    try:
        return Hazard(name)
    except ValueError:
        names = ", ".join(hazard.value for hazard in Hazard if hazard is not Hazard.ORDINARY)
        raise OperatorError(f"--allow {name}: there is no such hazard; there are {names}") from None


def _vault_of(flags: Flags) -> Vault | None:
    if flags.evidence not in {"markers", "full"}:
        raise OperatorError(f"--evidence {flags.evidence}: it is markers (no text is kept) or full")
    if (flags.evidence == "full") != (flags.evidence_to is not None):
        raise OperatorError(
            "--evidence full and --evidence-to age1… belong together: texts are kept encrypted"
        )
    if flags.evidence_to is None:
        return None
    check_recipient(flags.evidence_to)
    keep_until = datetime.now(UTC).date() + timedelta(days=flags.evidence_days)
    return Vault(folder=Path("kvfence-evidence"), recipient=flags.evidence_to, keep_until=keep_until)


def _how_to_go_on(events: Path | None) -> str:
    if events is None:
        return "interrupted; with --jsonl FILE a run can be gone on with"
    return f"interrupted; kvfence check … --resume {events} goes on"
