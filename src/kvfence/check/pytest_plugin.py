"""pytest plugin: `pytest --kvfence-url URL …` makes each scenario of a check a test.

Rules it keeps:
- Without `--kvfence-url` it does nothing, and loads nothing but pytest.
- The check is one run, as the command would do it: the first of its tests does it, the others say what came
  of theirs. A finding at or above `--kvfence-fail-on` fails its test; what was not tested is skipped, with
  the reason; *inconclusive* is skipped unless `--kvfence-on-inconclusive fail` is given.
- Keys are named by their environment variables. No text of an answer is in any report.
"""

import asyncio
import os
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kvfence.report import AnyEvent, FindingMade, ScenarioEnded

# What checks is imported when a check is asked for: the plugin stands in everybody's pytest.
# ruff: noqa: PLC0415

GROUP = "kvfence"
SEEDS = 1 << 32
# Written out, so that the options can be added without loading what checks; a test compares them.
PROFILES = ("quick", "standard", "deep")
HAZARDS = ("heavy", "may-stop-server", "may-harm-others")
SEVERITIES = ("critical", "high", "medium", "low", "info")
RESULTS = pytest.StashKey["Results"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup(GROUP, "check a server that speaks OpenAI's API for leaks between requests")
    add = group.addoption
    add("--kvfence-url", metavar="URL", help="base URL, with or without /v1")
    add("--kvfence-key-env", metavar="NAME", action="append", default=[], help="variable with a key")
    add("--kvfence-two-tenants", action="store_true", help="the two keys are two tenants")
    add("--kvfence-model", metavar="M", help="the model to check")
    add("--kvfence-profile", default="quick", choices=PROFILES, help="quick (default), standard or deep")
    add("--kvfence-allow", action="append", default=[], choices=HAZARDS, help="a hazard to allow")
    add("--kvfence-seed", metavar="N", type=int, help="draws everything")
    add("--kvfence-fail-on", default="medium", choices=SEVERITIES, help="from this severity on (medium)")
    add("--kvfence-on-inconclusive", default="skip", choices=("skip", "fail"), help="skip (default) or fail")


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each scenario of the profile."""
    if config.getoption("--kvfence-url") is None:
        return
    from kvfence.check.profiles import profile_named
    from kvfence.check.scenarios import SCENARIOS

    profile = profile_named(config.getoption("--kvfence-profile"))
    config.stash[RESULTS] = Results(session)
    items.extend(
        ScenarioItem.from_parent(session, name=f"kvfence[{scenario.name}]", scenario=scenario.name)
        for scenario in SCENARIOS.values()
        if profile.takes(scenario)
    )


class Results:
    """What the one run came to, by scenario; it is done when it is first asked for, of what was selected."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._events: list[AnyEvent] | None = None
        self._refused: str | None = None

    def of(self, scenario: str) -> "tuple[ScenarioEnded | None, tuple[FindingMade, ...]]":
        """How a scenario ended, and what it found. Raises FoundError where the target cannot be checked."""
        from kvfence.report import FindingMade, ScenarioEnded

        events = self._all()
        if self._refused is not None:
            raise FoundError(f"nothing was tested: {self._refused}")
        ends = [one for one in events if isinstance(one, ScenarioEnded) and one.scenario == scenario]
        found = tuple(one for one in events if isinstance(one, FindingMade) and one.scenario == scenario)
        return (ends[-1] if ends else None), found

    def _all(self) -> "list[AnyEvent]":
        from kvfence.protocol.errors import KvfenceError

        if self._events is None:
            self._events = []
            only = tuple(item.scenario for item in self._session.items if isinstance(item, ScenarioItem))
            try:
                asyncio.run(_check(self._session.config, only, self._events))
            except KvfenceError as error:
                self._refused = f"{error}"
        return self._events


async def _check(config: pytest.Config, only: tuple[str, ...], events: "list[AnyEvent]") -> None:
    from kvfence.check.checking import Wishes, check_target
    from kvfence.check.credentials import Redactor
    from kvfence.check.profiles import profile_named
    from kvfence.check.scenario import Hazard
    from kvfence.check.scenarios import SCENARIOS
    from kvfence.check.target import simple_target

    redactor = Redactor()
    seed = config.getoption("--kvfence-seed")
    target = simple_target(
        config.getoption("--kvfence-url"),
        key_names=config.getoption("--kvfence-key-env"),
        environ=os.environ,
        redactor=redactor,
        model=config.getoption("--kvfence-model"),
        has_two_tenants=config.getoption("--kvfence-two-tenants"),
    )
    wishes = Wishes(
        profile=profile_named(config.getoption("--kvfence-profile")),
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        run_id=secrets.token_hex(6),
        only=only,
        allowed=frozenset(Hazard(name) for name in config.getoption("--kvfence-allow")),
    )
    await check_target(target, wishes, SCENARIOS.values(), events.append, redactor=redactor)


class FoundError(Exception):
    """A scenario found something, or could not look; its words are the report."""


class ScenarioItem(pytest.Item):
    """One scenario as a test."""

    def __init__(self, *, scenario: str, **others: Any) -> None:
        super().__init__(**others)
        self.scenario = scenario

    def runtest(self) -> None:
        """Pass, skip or fail as the scenario's verdict says."""
        from kvfence.report import Severity, Verdict

        ended, found = self.config.stash[RESULTS].of(self.scenario)
        fail_on = Severity(self.config.getoption("--kvfence-fail-on"))
        grave = [made for made in found if made.finding.severity.is_at_least(fail_on)]
        if grave:
            raise FoundError("\n".join(_lines(grave)))
        if ended is None or ended.verdict is Verdict.NOT_TESTED:
            pytest.skip("not tested: " + ("it was not reached" if ended is None else ended.why))
        if ended.verdict is Verdict.INCONCLUSIVE:
            if self.config.getoption("--kvfence-on-inconclusive") == "fail":
                raise FoundError(f"inconclusive: {ended.why}")
            pytest.skip(f"inconclusive: {ended.why}")
        if ended.bound is not None:
            bound = ended.bound
            words = (
                f"no evidence in {bound.opportunities} opportunities: upper 95 % bound {bound.upper_95:.3g}"
            )
            self.add_report_section("call", GROUP, words)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], *arguments: Any, **flags: Any
    ) -> Any:
        """Show what was found, without a traceback of ours."""
        if isinstance(excinfo.value, FoundError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *arguments, **flags)

    def reportinfo(self) -> tuple[str, None, str]:
        """Say where the test stands: at the server."""
        return self.config.getoption("--kvfence-url"), None, self.name


def _lines(grave: "list[FindingMade]") -> Iterator[str]:
    for made in grave:
        finding = made.finding
        yield f"{finding.code} {finding.severity}: {finding.about}: {finding.what}"
        if finding.replay is not None:
            yield f"  see it again: {finding.replay}"
        yield f"  what it means, and what to do: kvfence explain {finding.code}"
