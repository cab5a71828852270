"""A scenario: one small experiment on a server, with its oracle, control, cost and hazard.

Rules it keeps:
- A scenario asks only through its Bench, which keeps budgets, guards heavy requests by the lifeline, records
  every answer, and looks for foreign markers in each. A foreign marker never comes back as a reply: the bench
  stops the run.
- An outcome says how often a leak had its chance (`opportunities`), how likely a chance would have been seen
  (`sensitivity`, from the positive control of the same run), and what it came to. "No evidence" without a
  number is impossible.
- A scenario draws its random numbers from the bench alone, so that a seed replays it.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import Protocol

from kvfence.check.asks import Ask
from kvfence.check.known import Known, Need
from kvfence.check.markers import Marker
from kvfence.check.reply import Reply
from kvfence.report import Cost, Severity, Verdict


@unique
class Hazard(StrEnum):
    """What a scenario can do to a server that others use. Only ORDINARY runs unless it is allowed."""

    ORDINARY = "ordinary"
    HEAVY = "heavy"  # long prompts
    MAY_STOP_SERVER = "may-stop-server"  # over-length: some servers crash, hang or block every later request
    MAY_HARM_OTHERS = "may-harm-others"  # abort storms, cancelled long prefills, colliding ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of it to do: the profile's choice. A scenario multiplies its smallest useful round."""

    rounds: int = 1
    resolution_tokens: int = 4_096
    locates_edge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a scenario found, before it is a finding: the runner adds target, model, seed and replay line."""

    code: str
    severity: Severity
    what: str
    subject_key: str
    evidence: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    rival: str | None = None
    smallest_effect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a scenario came to.

    `sensitivity` and `co_residence` are shares in (0, 1], None where nothing measured them. `p_value` is of
    the scenario's own test, uncorrected: the runner corrects over all of them (Holm), and turns SUSPECT into
    NO_EVIDENCE where the corrected value does not hold.
    """

    verdict: Verdict
    why: str
    opportunities: int = 0
    sensitivity: float | None = None
    co_residence: float | None = None
    p_value: float | None = None
    smallest_effect: str | None = None
    sightings: tuple[Sighting, ...] = ()
    notes: tuple[str, ...] = ()


class Bench(Protocol):
    """What a scenario works with. Times are those of the running event loop."""

    @property
    def known(self) -> Known:
        """What is known of the target."""

    @property
    def size(self) -> Size:
        """How much to do."""

    @property
    def random(self) -> random.Random:
        """The scenario's own stream of random numbers."""

    @property
    def tenants(self) -> tuple[str, ...]:
        """Names of the tenants, the first one's credential always there; two names may share one key."""

    async def ask(self, tenant: str, ask: Ask, *, own: tuple[Marker, ...] = ()) -> Reply:
        """Send a request and return its reply, recorded, with no foreign marker in it.

        `own` are the markers that this request may honestly bring back: those in its prompt. All others that
        were minted are foreign. Raises StopRun (a foreign marker, a failed lifeline, a spent budget), which a
        scenario never catches.
        """

    def mint(self, owner: str) -> Marker:
        """Return a new marker that belongs to `owner`: a tenant's name, or any name of one request."""

    def forget(self, *markers: Marker) -> None:
        """Retire markers whose coming back would prove nothing any more."""

    def note(self, text: str, *, is_warning: bool = False) -> None:
        """Say something that the report should hold."""

    def learned(self, name: str, value: float, how: str) -> None:
        """Say a figure of the server that the report should hold or draw, and how it was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One experiment, as data, with the function that does it.

    `classes` are root-cause classes that it can see, `codes` the findings that it can make. `needs` are all
    wanted. `is_in_quick` puts it into the shortest profile.
    """

    name: str
    what: str
    hazard: Hazard
    classes: tuple[str, ...]
    oracle: str
    control: str
    codes: tuple[str, ...]
    cost: Callable[[Known, Size], Cost]
    run: Callable[[Bench], Awaitable[Outcome]]
    needs: frozenset[Need] = frozenset()
    is_in_quick: bool = False
