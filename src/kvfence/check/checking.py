"""One check, from the probe to the last verdict: what the command, the pytest plugin and the watch share.

Rules it keeps:
- First the capability probe, then the plan with its costs, then the scenarios; with `is_plan_only` nothing
  after the plan.
- The budget holds for the probe, too; its texts come from the seed, like those of the scenarios.
- Everything is said as events, each at once. The exit code is judged from them, by the caller.
- The lifeline has a client, and so connections, of its own.
"""

import asyncio
import random
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import httpx
import msgspec

from kvfence.check.asks import TIMEOUT_S
from kvfence.check.bench import Session
from kvfence.check.budget import Budget, Limits, Price
from kvfence.check.capability import probe
from kvfence.check.client import HttpClient
from kvfence.check.counted import Counted
from kvfence.check.credentials import Redactor
from kvfence.check.evidence import Vault
from kvfence.check.known import Known
from kvfence.check.markers import MarkerBook
from kvfence.check.plan import Plan, make_plan
from kvfence.check.profiles import Profile
from kvfence.check.resume import Resumed
from kvfence.check.run import Run
from kvfence.check.scenario import Hazard, Scenario
from kvfence.check.shared_key import SAID, with_two_names
from kvfence.check.stops import BudgetSpent
from kvfence.check.target import Target
from kvfence.check.tokens import by_bytes
from kvfence.check.verdicts import Ended
from kvfence.report import AnyEvent, Cost, Noted, Verdict

Emit = Callable[[AnyEvent], None]
# After one of these a longer run does not go round again: it has what it looked for.
TELLING = (Verdict.LEAK, Verdict.UNREAD, Verdict.HANG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user wants of a run. `limits` and `price` stand before those of the target and the profile."""

    profile: Profile
    seed: int
    run_id: str
    allowed: frozenset[Hazard] = frozenset()
    only: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    price: Price | None = None
    is_plan_only: bool = False
    vault: Vault | None = None
    resumed: Resumed | None = None

    def limits_of(self, target: Target) -> Limits:
        """What the run of one target may use."""
        return self.limits.over(target.limits.over(self.profile.limits))


async def check_target(
    target: Target,
    wishes: Wishes,
    scenarios: Iterable[Scenario],
    emit: Emit,
    *,
    redactor: Redactor,
    show_plan: Callable[[Plan, Limits, Price | None], None] = lambda *_: None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> tuple[Ended, ...]:
    """Check one target. Raises TargetUnreachable or CredentialsRefused when the probe gets nowhere."""
    client = HttpClient(target, run=wishes.run_id, redactor=redactor, transport=transport)
    # The lifeline's limits are what it has measured, whatever else requests are given here.
    prompt = replace(target, request_timeout_s=TIMEOUT_S)
    lifeline = HttpClient(prompt, run=wishes.run_id, redactor=redactor, transport=transport)
    try:
        session = await _session(target, wishes, client, lifeline, emit)
        plan = make_plan(
            scenarios,
            session.known,
            wishes.profile,
            allowed=wishes.allowed | target.allowed,
            only=wishes.only,
        )
        show_plan(plan, session.budget.limits, session.budget.price)
        if wishes.is_plan_only:
            return ()
        return await _rounds(target, wishes, session, plan)
    finally:
        await client.aclose()
        await lifeline.aclose()


async def _session(
    target: Target, wishes: Wishes, client: HttpClient, lifeline: HttpClient, emit: Emit
) -> Session:
    """Probe the target, and lay out what all scenarios share."""
    resumed = wishes.resumed
    began_s = asyncio.get_running_loop().time() - (resumed.at_s if resumed else 0.0)
    price = wishes.price or target.price
    budget = Budget(wishes.limits_of(target), price, used=resumed.used if resumed else Cost())
    known = await _known(target, wishes, Counted(client, budget, began_s=began_s), emit)
    lifeline.adopt(client.manner)
    asker = with_two_names(client)
    if asker is not client:
        emit(Noted(text=SAID))
    return Session(
        client=asker,
        lifeline_client=lifeline,
        known=known,
        book=MarkerBook(),
        budget=budget,
        tenants=asker.tenants,
        emit=emit,
        began_s=began_s,
        requests=resumed.requests if resumed else 0,
    )


async def _known(target: Target, wishes: Wishes, client: Counted, emit: Emit) -> Known:
    """Probe the target. A budget that does not hold the probe holds no scenario: none is tested."""
    # A run that goes on asks anew what caches may know from its first part.
    part = wishes.resumed.requests if wishes.resumed else 0
    rng = random.Random(f"{wishes.seed}/probe/{part}")  # noqa: S311 -- it must come again by its seed
    is_brief = wishes.profile.is_short and not wishes.only
    try:
        return await probe(client, target, emit, rng=rng, is_brief=is_brief)
    except BudgetSpent as spent:
        why = f"the budget was spent before the server was known: {spent}"
        emit(Noted(text=why, is_warning=True))
        model = target.model or "an unknown model"
        return Known(model=model, has=frozenset(), counter=by_bytes(), untestable=why)


async def _rounds(target: Target, wishes: Wishes, session: Session, plan: Plan) -> tuple[Ended, ...]:
    """Run the plan; a soak runs it again, with other random numbers, until its hours are over."""
    hash_key = secrets.token_bytes(32)
    done = wishes.resumed.done if wishes.resumed else frozenset()
    all_ended: list[Ended] = []
    number = 1
    while True:
        this = (
            session if number == 1 else replace(session, emit=_renaming(session.emit, f" (round {number})"))
        )
        run = Run(
            session=this,
            plan=plan if number == 1 else Plan(plan.chosen, ()),
            about=f"{target.shown} {session.known.model}",
            seed=str(wishes.seed) if number == 1 else f"{wishes.seed}r{number}",
            profile=wishes.profile.name,
            run_id=wishes.run_id,
            hash_key=hash_key,
            vault=wishes.vault,
            is_done=(lambda name: name in done) if number == 1 else (lambda _name: False),
        )
        ended = await run.go()
        session.requests = this.requests
        all_ended += ended
        is_over = session.at_s >= (wishes.profile.hours or 0.0) * 3_600
        if is_over or not plan.chosen or any(one.outcome.verdict in TELLING for one in ended):
            return tuple(all_ended)
        number += 1


def _renaming(emit: Emit, suffix: str) -> Emit:
    """Say which round, or which of several targets, a scenario's events are of."""

    def renamed(event: AnyEvent) -> None:
        name = getattr(event, "scenario", None)
        emit(event if name is None else msgspec.structs.replace(event, scenario=name + suffix))

    return renamed


def for_one_of_several(emit: Emit, target: Target) -> Emit:
    """The events of one of several targets: its name stands behind each scenario's."""
    return _renaming(emit, f" at {target.name}")
