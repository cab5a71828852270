"""Requests that quote their own marker: what the marker scenarios are made of, and how they are counted.

Rules it keeps:
- Every request has a marker of its own, minted for its tenant. That a foreign one comes back is the bench's
  to see; here only one's own is counted, for its share is the sensitivity that "no evidence" needs.
- An opportunity is an answer that came to its end. One that was hung up on, refused or cut is none.
- A prompt begins with its marker, so that no prefix cache has it.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.markers import WORDS, Marker, is_shown
from kvfence.check.markers_prompts import (
    PLANT_LINES,
    QUOTE_TOKENS,
    copying_endpoint,
    prompt_tokens_max,
    prompts_for,
)
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench, Outcome, Sighting
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.statistics import detectable_rate, fisher_greater
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

AT_ONCE = 8
WAVE_S = 10.0  # what a wave of short requests takes at most, for the plan
LINES_MAX = 12
CANCELLED_SHARE = 0.25
CANCEL_AFTER_CHUNKS_MAX = 12
CONTROLS = 4
PAUSE_S = 0.5  # what one request, or one pass of them, left in flight has landed before the next begins
SUSPECT_ALPHA = 0.01  # of one scenario; the runner corrects over all of them


@dataclass(slots=True)
class Tally:
    """Quoting requests by how they ended. `shown`: the answer held its own marker."""

    asked: int = 0
    answered: int = 0
    shown: int = 0
    hung_up: int = 0
    failed: int = 0
    prompt_tokens: int = 0

    def count(self, reply: Reply, marker: Marker) -> None:
        """Add one request's end."""
        self.asked += 1
        if reply.is_answer:
            self.answered += 1
            self.shown += is_shown(marker, reply.content)
        elif reply.failure is Failure.HUNG_UP:
            self.hung_up += 1
        else:
            self.failed += 1

    @property
    def lost(self) -> int:
        """Answers that did not hold their own marker."""
        return self.answered - self.shown

    @property
    def shown_share(self) -> float | None:
        """The share of answers with their own marker: what the detector would see of a leak."""
        return self.shown / self.answered if self.shown else None

    def __str__(self) -> str:
        return (
            f"{self.answered} answers, {self.shown} of them with their own marker and none with another's; "
            f"{self.hung_up} were hung up on, {self.failed} failed"
        )


def tenant_at(bench: Bench, index: int) -> str:
    """Tenants take turns."""
    return bench.tenants[index % len(bench.tenants)]


def quote_of(bench: Bench, marker: Marker, *, mark: str, lines: int | None = None, lead: int = 0) -> Ask:
    """A request whose answer should be its own marker; `lines` and `lead` words make it longer."""
    endpoint = copying_endpoint(bench.known)
    prompts = prompts_for(marker, endpoint, lines=lines or PLANT_LINES, lead=lead)
    return Ask(
        prompt=prompts.quote if lines is None else prompts.plant,
        mark=mark,
        endpoint=endpoint,
        max_tokens=QUOTE_TOKENS,
    )


async def quote_serially(bench: Bench, count: int = CONTROLS) -> Tally:
    """The positive control: quoting requests, one at a time, nothing else of ours in flight.

    A pause before each lets land what a request before it, or its own forerunner, left behind.
    """
    tally = Tally()
    for index in range(count):
        await asyncio.sleep(PAUSE_S)
        tenant = tenant_at(bench, index)
        marker = bench.mint(tenant)
        ask = quote_of(bench, marker, mark="control")
        tally.count(await bench.ask(tenant, ask, own=(marker,)), marker)
    return tally


async def quote_wave(
    bench: Bench, tally: Tally, *, at_once: int = AT_ONCE, cancels: bool = False, mark: str = "probe"
) -> None:
    """Quoting requests at once, of different lengths; some are hung up on in the middle of their answer."""
    asks = []
    for index in range(at_once):
        marker = bench.mint(tenant_at(bench, index))
        lines = bench.random.randint(PLANT_LINES // 2, LINES_MAX)
        # Not whole lines alone: the last page of a prompt is full to another place each time.
        ask = quote_of(bench, marker, mark=mark, lines=lines, lead=bench.random.randrange(WORDS))
        if cancels and bench.random.random() < CANCELLED_SHARE:
            ask = hanging_up(bench, ask)
        asks.append((tenant_at(bench, index), ask, marker))
    await ask_all(bench, asks, tally)


async def quote_as_waves_do(bench: Bench, tally: Tally, count: int) -> None:
    """More of the serial control, in the shapes of a wave."""
    for _ in range(count):
        await asyncio.sleep(PAUSE_S)
        await quote_wave(bench, tally, at_once=1, mark="control")


async def ask_all(bench: Bench, asks: Iterable[tuple[str, Ask, Marker]], tally: Tally) -> None:
    """Send (tenant, request, its marker) all at once, and count how each ended."""
    asks = list(asks)
    replies = await together(bench.ask(tenant, ask, own=(marker,)) for tenant, ask, marker in asks)
    for (_, ask, marker), reply in zip(asks, replies, strict=True):
        tally.count(reply, marker)
        tally.prompt_tokens += reply.usage.prompt_tokens or _estimate(bench.known, ask)


def hanging_up(bench: Bench, ask: Ask) -> Ask:
    """The same request, ended by us after some chunks of its answer."""
    after = bench.random.randint(1, CANCEL_AFTER_CHUNKS_MAX)
    return Ask(
        prompt=ask.prompt,
        mark="cancelled",
        endpoint=ask.endpoint,
        max_tokens=ask.max_tokens,
        hang_up_after_chunks=after,
    )


def quotes_cost(requests: int, *, lines: int, at_once: int = 1) -> Cost:
    """So many quoting requests, `at_once` of them side by side."""
    waves = -(-requests // at_once)
    return Cost(
        requests=requests,
        prompt_tokens=requests * prompt_tokens_max(lines),
        completion_tokens=requests * QUOTE_TOKENS,
        seconds=waves * WAVE_S,
    )


def churn_note(tally: Tally) -> str:
    """What an opportunity cost: free lists may hand out the page last that was given back first."""
    per_answer = tally.prompt_tokens // max(1, tally.answered)
    return (
        f"{tally.prompt_tokens:,} tokens were written in all, {per_answer:,} an opportunity; a server whose "
        "free pages wait in line shows a stale page only after its whole pool was written once"
    )


def calm(bench: Bench, tally: Tally, control: Tally, *, notes: tuple[str, ...] = ()) -> Outcome:
    """No foreign marker was seen: what that is worth."""
    if not control.shown:
        why = (
            f"in {control.answered} requests asked one at a time the model never quoted its own marker: "
            "it would not have shown another's"
        )
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=tally.answered, notes=notes)
    if tally.shown_share is None or control.shown_share is None:
        why = f"nothing at once came to its end with its own marker: {tally}"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, notes=notes)
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=f"{tally}",
        opportunities=tally.answered,
        sensitivity=min(tally.shown_share, control.shown_share),
        co_residence=co_residence(bench.known),
        smallest_effect="nine or more words of one marker's sixteen, in their order",
        notes=(*notes, churn_note(tally)),
    )


def judged(
    bench: Bench,
    probes: Tally,
    beside: Tally,
    control: Tally,
    *,
    key: str,
    what: str,
    notes: tuple[str, ...] = (),
) -> Outcome:
    """Calm, unless answers under the scenario's load lose their own marker more often than their control.

    `beside` is that control: as many requests at once, without what the scenario does, or the serial ones. A
    lost marker is no leak; it is suspect at most, and only if Fisher's test says so.
    """
    outcome = calm(bench, probes, control, notes=notes)
    if not (probes.answered and beside.answered):
        return outcome
    p_value = fisher_greater(probes.lost, probes.answered, beside.lost, beside.answered)
    if p_value <= SUSPECT_ALPHA:
        return _suspect(bench, probes, beside, p_value, key=key, what=what)
    if outcome.verdict is not Verdict.NO_EVIDENCE:
        return outcome
    rate = detectable_rate(probes.answered, control_rate=beside.lost / beside.answered)
    effect = f"{outcome.smallest_effect}; or {rate:.0%} of answers that lose their own"
    return replace(outcome, p_value=p_value, smallest_effect=effect)


def _suspect(bench: Bench, probes: Tally, beside: Tally, p_value: float, *, key: str, what: str) -> Outcome:
    said = (
        f"{what}: {probes.lost} of {probes.answered} answers lost their own marker; of the controls "
        f"{beside.lost} of {beside.answered} did"
    )
    sighting = Sighting(
        code="KVF206",
        severity=Severity.MEDIUM,
        what=said,
        subject_key=key,
        evidence={
            "answers": probes.answered,
            "lost": probes.lost,
            "control_answers": beside.answered,
            "control_lost": beside.lost,
        },
        rival="rounding that differs with the batch, which may change what a model says next",
    )
    return Outcome(
        verdict=Verdict.SUSPECT,
        why=said,
        opportunities=probes.answered,
        sensitivity=beside.shown_share,
        co_residence=co_residence(bench.known),
        p_value=p_value,
        sightings=(sighting,),
    )


def _estimate(known: Known, ask: Ask) -> int:
    return known.counter.count(ask.prompt) if isinstance(ask.prompt, str) else len(ask.prompt)
