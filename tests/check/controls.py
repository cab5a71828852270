"""Controls: one check of a fake server in virtual time, and what it found, after how much.

Two tenants with a key each, the server one's own, every hazard allowed. A run ends with its first finding:
what comes after would cost time and change nothing.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec
from tests.check.fake.server import FakeServer
from tests.check.fake.setup import Setup
from tests.check.fake.transport import FakeTransport
from tests.check.virtual import run

from kvfence.check.budget import Limits
from kvfence.check.capability import CredentialsRefused, TargetUnreachable
from kvfence.check.checking import Wishes, check_target
from kvfence.check.credentials import Redactor
from kvfence.check.profiles import profile_named
from kvfence.check.scenario import Scenario
from kvfence.check.scenarios import SCENARIOS
from kvfence.check.target import simple_target
from kvfence.report import Answered, AnyEvent, FindingMade, RunStarted, ScenarioEnded, Verdict
from kvfence.report.exit_codes import ExitCode, ending_of

JITTER = 0.1
KEYS = {"KEY_A": "key-of-a", "KEY_B": "key-of-b"}
STARTED = RunStarted(
    tool="check", version="0", run="control", started="2026-01-01T00:00:00+00:00", targets=("the fake",)
)
HARD = frozenset((Verdict.LEAK, Verdict.UNREAD, Verdict.TRUNCATED, Verdict.HANG, Verdict.SUSPECT))


class Played(msgspec.Struct, frozen=True):
    """What a run came to. `scenario` None: nothing was found. `ended` are verdicts by scenario.

    Of real processes alone, where nothing was found: `limit_s` is where the run was ended, if it was, and
    `moved` where their trace leaves the protocol's path.
    """

    seed: int
    scenario: str | None
    verdict: str | None
    codes: tuple[str, ...]
    requests: int
    seconds: float
    ended: dict[str, str]
    limit_s: float | None = None
    moved: dict[str, int] | None = None


class _EnoughError(Exception):
    """The first finding was made."""


@dataclass
class _Watch:
    """Counts what a run says, and ends it when it has found something that counts."""

    counts: frozenset[Verdict]
    ends_early: bool
    requests: int = 0
    at_s: float = 0.0
    codes: list[str] | None = None
    found: ScenarioEnded | None = None
    ended: dict[str, str] | None = None
    kept: list[AnyEvent] | None = None

    def take(self, event: AnyEvent) -> None:
        if self.kept is not None:
            self.kept.append(event)
        self.at_s = max(self.at_s, event.at_s)
        if isinstance(event, Answered):
            self.requests += 1
        if isinstance(event, FindingMade):
            self.codes = [*(self.codes or ()), event.finding.code]
        if isinstance(event, ScenarioEnded):
            self.ended = {**(self.ended or {}), event.scenario: event.verdict.value}
            if event.verdict in self.counts and self.found is None:
                self.found = event
                if self.ends_early:
                    raise _EnoughError


def play(
    setup: Setup,
    *,
    seed: int,
    profile: str = "standard",
    only: tuple[str, ...] = (),
    counts: frozenset[Verdict] = HARD,
    ends_early: bool = True,
    scenarios: Iterable[Scenario] | None = None,
    limits: Limits | None = None,
) -> Played:
    """Check a new fake server of this setup. `counts` are the verdicts that are findings."""
    watch = _Watch(counts, ends_early)
    run(_check(replace(setup, seed=seed, jitter=JITTER), seed, profile, only, scenarios, watch, limits))
    return Played(
        seed=seed,
        scenario=None if watch.found is None else watch.found.scenario,
        verdict=None if watch.found is None else watch.found.verdict.value,
        codes=tuple(watch.codes or ()),
        requests=watch.requests,
        seconds=round(watch.at_s, 3),
        ended=watch.ended or {},
    )


def ending(setup: Setup, *, seed: int, profile: str = "quick") -> ExitCode:
    """How `kvfence check` of this server would exit."""
    events: list[AnyEvent] = [STARTED]
    watch = _Watch(HARD, ends_early=False, kept=events)
    try:
        run(_check(replace(setup, seed=seed), seed, profile, (), None, watch, None))
    except (TargetUnreachable, CredentialsRefused):
        return ExitCode.UNREACHABLE
    return ending_of(events).code


async def _check(setup, seed, profile, only, scenarios, watch, limits):
    redactor = Redactor()
    target = simple_target(
        "http://127.0.0.1:8000/v1",
        key_names=tuple(KEYS),
        environ=KEYS,
        redactor=redactor,
        model=setup.model,
        has_two_tenants=True,
    )
    wishes = Wishes(
        profile=profile_named(profile),
        seed=seed,
        run_id=f"control-{seed}",
        only=only,
        limits=limits or Limits(),
    )
    with suppress(_EnoughError):
        await check_target(
            replace(target, is_own_server=True),
            wishes,
            SCENARIOS.values() if scenarios is None else scenarios,
            watch.take,
            redactor=redactor,
            transport=FakeTransport(FakeServer(setup).app),
        )
