"""The watch: ordinary scenarios at a trickle, one after another, for ever.

Rules it keeps:
- Only what is ordinary runs, whatever the target allows: nobody sits beside a watch.
- One scenario a look; the looks of a round are spread evenly over its period.
- The first leak ends the asking: a foreign marker, or interference reproduced exactly. The metrics stay, so
  that an alert fires.
- A target that does not answer is tried again at the next look, and shown as down meanwhile.
"""

import asyncio
import dataclasses
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from kvfence.check.budget import Limits
from kvfence.check.capability import CredentialsRefused, TargetUnreachable
from kvfence.check.checking import Emit, Wishes, check_target
from kvfence.check.credentials import Redactor
from kvfence.check.profiles import Profile
from kvfence.check.scenario import Hazard, Scenario, Size
from kvfence.check.target import Target
from kvfence.check.watch_state import WatchState, take
from kvfence.report import Answered, AnyEvent, Noted, Verdict

SEEDS = 1 << 32
LOOK = Profile(name="watch", what="one scenario a look", size=Size(rounds=1), limits=Limits(requests=400))


def ordinary(scenarios: Sequence[Scenario]) -> tuple[Scenario, ...]:
    """Those that a watch may run."""
    return tuple(scenario for scenario in scenarios if scenario.hazard is Hazard.ORDINARY)


@dataclass(kw_only=True)
class Watch:
    """One target under watch. `changed` is called after each look, with the state to show and to store."""

    target: Target
    scenarios: tuple[Scenario, ...]
    state: WatchState
    period_s: float
    emit: Emit
    redactor: Redactor
    changed: Callable[[WatchState], None]
    transport: httpx.AsyncBaseTransport | None = None
    wall_clock: Callable[[], float] = time.time

    async def go(self, *, looks_max: int | None = None) -> None:
        """Look for ever, or so many times. Returns when a leak was seen."""
        gap_s = self.period_s / len(self.scenarios)
        look = 0
        self.changed(self.state)
        while self.state.stopped is None and (looks_max is None or look < looks_max):
            began_s = asyncio.get_running_loop().time()
            await self.look(self.scenarios[look % len(self.scenarios)])
            self.changed(self.state)
            look += 1
            left_s = gap_s - (asyncio.get_running_loop().time() - began_s)
            await asyncio.sleep(max(0.0, left_s))

    async def look(self, scenario: Scenario) -> None:
        """Run one scenario with random numbers of its own, and count what it came to."""
        wishes = Wishes(
            profile=LOOK,
            seed=secrets.randbelow(SEEDS),
            run_id=secrets.token_hex(6),
            only=(scenario.name,),
        )
        sent = _Counted(self.emit)
        careful = dataclasses.replace(self.target, allowed=frozenset({Hazard.ORDINARY}))
        try:
            ended = await check_target(
                careful,
                wishes,
                self.scenarios,
                sent,
                redactor=self.redactor,
                transport=self.transport,
            )
        except (TargetUnreachable, CredentialsRefused) as error:
            self.state.is_up = False
            self.emit(Noted(text=str(error), is_warning=True))
            return
        self.state.is_up = True
        self.state.requests += sent.requests
        now_s = self.wall_clock()
        for name in take(self.state, ended, scenarios=len(self.scenarios), now_s=now_s):
            text = f"{name}: the evidence of a change is enough: see kvfence_watch_evidence"
            self.emit(Noted(text=text, is_warning=True))
        if any(one.outcome.verdict is Verdict.LEAK for one in ended):
            self.state.stopped = f"a leak was seen by {scenario.name}"


class _Counted:
    """Counts the requests in a stream of events that it passes on."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.requests = 0

    def __call__(self, event: AnyEvent) -> None:
        """Pass one event on."""
        self.requests += isinstance(event, Answered)
        self._emit(event)
