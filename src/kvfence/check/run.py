"""A run: the scenarios of a plan, one after another, to the last verdict.

Rules it keeps:
- The first foreign marker ends the run, with exit 1 and what to do. A lifeline that fails ends everything
  that is not ordinary. A spent budget ends the run. What did not come to pass is *not tested*, never passed.
- Whatever a scenario leaves in flight is cancelled, which closes its connection, before the next one begins.
- Verdicts that hang on a p-value are given at the end, corrected over all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from kvfence.check.bench import LiveBench, Session
from kvfence.check.evidence import ADVICE, Vault, facts_of
from kvfence.check.plan import Chosen, Plan
from kvfence.check.scenario import Hazard, Outcome, Scenario, Sighting
from kvfence.check.stops import BudgetSpent, ForeignMarkerSeen, LifelineFailed, Since, When, first_stop
from kvfence.check.verdicts import Ended, bound_of, corrected, finding_of, replay_id, without_false_calm
from kvfence.report import Cost, FindingMade, Noted, ScenarioEnded, ScenarioStarted, Severity, Verdict


@dataclass(kw_only=True)
class Run:
    """One target's scenarios. `about` names endpoint and model in findings; `hash_key` is never written."""

    session: Session
    plan: Plan
    about: str
    seed: str
    profile: str
    run_id: str
    hash_key: bytes
    vault: Vault | None = None
    is_done: Callable[[str], bool] = field(default=lambda _name: False)  # by an earlier, interrupted run

    async def go(self) -> tuple[Ended, ...]:
        """Run all, emit events, and return what each came to."""
        left_out = [Ended(scenario=left.scenario, outcome=_not_tested(left.why)) for left in self.plan.left]
        ended: list[Ended] = []
        waiting: list[Ended] = []
        stop: str | None = None
        pack_stop: str | None = None
        for chosen in self.plan.chosen:
            if self.is_done(chosen.scenario.name):
                continue
            why = stop or (pack_stop if chosen.scenario.hazard is not Hazard.ORDINARY else None)
            if why is not None:
                left_out.append(Ended(scenario=chosen.scenario, outcome=_not_tested(why)))
                continue
            one, stop, failed = await self._one(chosen)
            pack_stop = pack_stop or failed
            if one.outcome.p_value is None:
                self._tell(one)
                ended.append(one)
            else:
                waiting.append(one)
        for left in left_out:
            self._tell(left)
        judged = corrected(waiting)
        for one in judged:
            self._tell(one)
        return (*left_out, *ended, *judged)

    async def _one(self, chosen: Chosen) -> tuple[Ended, str | None, str | None]:
        """Run one scenario. Returns it, why the run must stop, and why its heavy part must."""
        session, scenario = self.session, chosen.scenario
        session.emit(
            ScenarioStarted(
                at_s=session.at_s,
                scenario=scenario.name,
                hazard=scenario.hazard.value,
                cost=chosen.cost,
            )
        )
        before, began_s = session.budget.used, session.at_s
        bench = LiveBench(session, scenario=scenario.name, size=chosen.size, seed=self.seed)
        stop: str | None = None
        pack_stop: str | None = None
        try:
            outcome = without_false_calm(await run_with(bench, scenario))
        except ForeignMarkerSeen as seen:
            outcome = self._leak(seen)
            stop = f"a foreign marker was seen by {scenario.name}: the run stopped there"
        except LifelineFailed as failed:
            outcome = _lifeline_failed(failed, scenario)
            pack_stop = (
                f"the lifeline failed in {scenario.name}: only ordinary requests are sent from there on"
            )
        except BudgetSpent as spent:
            outcome = spent.so_far or Outcome(verdict=Verdict.INCONCLUSIVE, why=f"{spent}")
            stop = f"the run's budget was spent: {spent}"
        used = Cost(
            requests=session.budget.used.requests - before.requests,
            prompt_tokens=session.budget.used.prompt_tokens - before.prompt_tokens,
            completion_tokens=session.budget.used.completion_tokens - before.completion_tokens,
            seconds=round(session.at_s - began_s, 3),
        )
        return Ended(scenario=scenario, outcome=outcome, used=used), stop, pack_stop

    def _leak(self, seen: ForeignMarkerSeen) -> Outcome:
        hit = seen.hits[0]
        for line in ADVICE:
            self.session.emit(Noted(at_s=self.session.at_s, text=line, is_warning=True))
        if self.vault is not None:
            path = self.vault.keep(self.run_id, seen)
            kept = f"the texts are in {path}, encrypted, to be deleted by {self.vault.keep_until.isoformat()}"
            self.session.emit(Noted(at_s=self.session.at_s, text=kept))
        owner = hit.marker.owner
        other = "another of its own requests" if owner == seen.tenant else owner
        what = (
            f"request {seen.request} of tenant {seen.tenant} was answered with {hit.share:.0%} of a marker "
            f"that only {other} was ever given ({hit.place}, {hit.bits:.0f} bits beyond chance)"
        )
        sighting = Sighting(
            code="KVF201",
            severity=Severity.CRITICAL,
            what=what,
            subject_key="foreign-marker",
            evidence=facts_of(seen, self.hash_key),
            rival="a cache or gateway in front of the server that mixes up answers would look the same",
        )
        return Outcome(verdict=Verdict.LEAK, why=what, sightings=(sighting,))

    def _tell(self, one: Ended) -> None:
        """Emit what a scenario came to."""
        session, outcome, scenario = self.session, one.outcome, one.scenario
        for note in outcome.notes:
            session.emit(Noted(at_s=session.at_s, text=f"{scenario.name}: {note}"))
        replay = replay_id(seed=self.seed, scenario=scenario.name, profile=self.profile)
        for sighting in outcome.sightings:
            finding = finding_of(sighting, scenario, about=self.about, replay=replay)
            session.emit(FindingMade(at_s=session.at_s, finding=finding, scenario=scenario.name))
        session.emit(
            ScenarioEnded(
                at_s=session.at_s,
                scenario=scenario.name,
                verdict=outcome.verdict,
                why=outcome.why,
                classes=scenario.classes,
                bound=bound_of(outcome) if outcome.verdict is Verdict.NO_EVIDENCE else None,
                p_value=outcome.p_value,
                control=scenario.control,
                smallest_effect=outcome.smallest_effect,
                used=one.used,
            )
        )


async def run_with(bench: LiveBench, scenario: Scenario) -> Outcome:
    """Run a scenario to its end. A StopRun that came out of several requests at once comes out alone."""
    try:
        return await scenario.run(bench)
    except BaseExceptionGroup as group:
        stop = first_stop(group)
        if stop is None:
            raise
        raise stop from group
    finally:
        await bench.close()


def _not_tested(why: str) -> Outcome:
    return Outcome(verdict=Verdict.NOT_TESTED, why=why)


def _lifeline_failed(failed: LifelineFailed, scenario: Scenario) -> Outcome:
    """An over-length prompt that stops a server is a finding; other load proves nothing by being heavy."""
    why = _what_failed(failed)
    if scenario.hazard is not Hazard.MAY_STOP_SERVER or not _is_hang(failed):
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    what = f"a prompt near or above the limit held up other requests: {why}"
    sighting = Sighting(
        code="KVF205",
        severity=Severity.HIGH,
        what=what,
        subject_key="hang",
        evidence={"lifeline_request": failed.request, "failed": failed.when.name, "since": failed.since.name},
        rival="load of others at that moment; the lifeline was in time on the quiet server",
    )
    return Outcome(verdict=Verdict.HANG, why=what, sightings=(sighting,))


def _is_hang(failed: LifelineFailed) -> bool:
    """Held up for longer than reading takes, or never answered again. A server that is only slow is none."""
    if failed.when is When.BEFORE:
        return False
    return failed.when is When.LATE or failed.since is Since.SILENT


def _what_failed(failed: LifelineFailed) -> str:
    """Say truthfully what was seen, and what was not waited for."""
    if failed.when is When.BEFORE:
        return f"small requests were not answered before anything heavy was sent: {failed}"
    what = f"the lifeline failed while {failed.when.value}: {failed}; "
    if failed.when is When.AFTERWARDS:
        return f"{what}after that {failed.since.value}"
    cancelled = f"{what}the heavy request was cancelled to spare others; after that {failed.since.value}"
    if failed.when is When.EARLY and failed.since is not Since.SILENT:
        return f"{cancelled}; whether it would have been answered is not known"
    return cancelled
