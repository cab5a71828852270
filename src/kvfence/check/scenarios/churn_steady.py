"""churn-steady: long greedy answers beside requests that stop at random, held against the same ones alone.

Rules it keeps:
- A step that still writes into pages which were given back changes what its neighbour reads. So short
  requests end at drawn lengths, or are hung up on, while long ones run.
- How far an answer is from its solo reference proves nothing by itself: batching changes rounding. The A/A
  control is the same answers beside as many requests that neither stop nor leave; a threshold is fitted on
  one half of these, and tested on the other.
- A reference that something else had touched would move all distances: each is asked for twice after a pause,
  and once more where the two differ. A pause before each pass lets what the last one left in flight land.
- A difference of texts is suspect at most, never a leak. A foreign marker would be one: the bench sees it.
"""

import asyncio
import dataclasses
from dataclasses import dataclass, field

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.markers import Marker, is_shown
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.quoting import (
    CANCELLED_SHARE,
    PAUSE_S,
    SUSPECT_ALPHA,
    WAVE_S,
    hanging_up,
    quote_of,
    quotes_cost,
    tenant_at,
)
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.statistics import detectable_rate
from kvfence.check.statistics_threshold import Threshold, fit_threshold
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

STEADY = 3
STEADY_TOKENS = 64
LINES = 8
BLOCKS = 6  # a round: each has passes beside plain load and one beside churn
PLAIN_PASSES = 2  # one half of the controls fits the threshold, and as many as there are probes test it
BESIDE = 8
CHURN_TURNS = 2  # short requests after one another, in each place beside: as long as the steady ones run
CHURN_TOKENS_MAX = 24
ALONE_MAX = 3  # times that a solo reference is asked for; two that agree are enough


@dataclass(slots=True)
class Passes:
    """Distances from the solo reference, and what else was counted."""

    distances: list[float] = field(default_factory=list)
    shown: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Steady:
    """A long greedy request with its solo reference."""

    tenant: str
    ask: Ask
    marker: Marker
    reference: str


def cost(_known: Known, size: Size) -> Cost:
    """Solo references, and in each block plain load and churn beside the steady ones."""
    blocks = BLOCKS * size.rounds
    a_block = PLAIN_PASSES * (STEADY + BESIDE) + STEADY + BESIDE * CHURN_TURNS
    alone = ALONE_MAX * STEADY
    requests = alone + blocks * a_block
    tokens = quotes_cost(requests, lines=LINES)
    pauses = (alone + blocks * (PLAIN_PASSES + 1)) * PAUSE_S
    seconds = (alone + blocks * (PLAIN_PASSES + CHURN_TURNS)) * WAVE_S + pauses
    return Cost(
        requests=requests,
        prompt_tokens=tokens.prompt_tokens,
        completion_tokens=requests * STEADY_TOKENS,
        seconds=seconds,
    )


async def run(bench: Bench) -> Outcome:
    """Alone, then beside plain load and beside churn, in an order that a coin decides."""
    steady, moved_alone = [], 0
    for index in range(STEADY):
        one, has_moved = await _alone(bench, tenant_at(bench, index))
        if one is None:
            return Outcome(verdict=Verdict.INCONCLUSIVE, why="a long request was not answered on its own")
        moved_alone += has_moved
        steady.append(one)
    controls, probes = Passes(), Passes()
    for _ in range(BLOCKS * bench.size.rounds):
        order = [(controls, False)] * PLAIN_PASSES + [(probes, True)]
        bench.random.shuffle(order)
        for passes, is_churn in order:
            await asyncio.sleep(PAUSE_S)
            await _beside(bench, steady, passes, is_churn=is_churn)
    return _outcome(bench, controls, probes, moved_alone)


async def _alone(bench: Bench, tenant: str) -> tuple[Steady | None, bool]:
    """A request with what it is answered alone, and whether it once was answered otherwise."""
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="control", lines=LINES)
    ask = dataclasses.replace(ask, max_tokens=STEADY_TOKENS)
    said: list[str] = []
    while len(said) < ALONE_MAX and not _is_settled(said):
        await asyncio.sleep(PAUSE_S)
        reply = await bench.ask(tenant, ask, own=(marker,))
        if not (reply.is_answer and reply.content):
            return None, False
        said.append(reply.content)
    steady = Steady(tenant, dataclasses.replace(ask, mark="probe"), marker, said[-1])
    return steady, len(set(said)) > 1


def _is_settled(said: list[str]) -> bool:
    """Whether the last answer had been given before."""
    return bool(said) and said[-1] in said[:-1]


async def _beside(bench: Bench, steady: list[Steady], passes: Passes, *, is_churn: bool) -> None:
    """The steady ones once, beside others that stay or that come and go."""
    beside = _churn if is_churn else _stay
    steady_asks = [bench.ask(one.tenant, one.ask, own=(one.marker,)) for one in steady]
    replies = await together([*steady_asks, *(beside(bench, index) for index in range(BESIDE))])
    for one, reply in zip(steady, replies[: len(steady)], strict=True):
        if reply is None or not reply.is_answer:
            passes.failed += 1
            continue
        passes.distances.append(distance(one.reference, reply.content))
        passes.shown += is_shown(one.marker, reply.content)


async def _stay(bench: Bench, index: int) -> Reply | None:
    """A request as long as the steady ones."""
    tenant = tenant_at(bench, index)
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="beside", lines=LINES)
    return await bench.ask(tenant, dataclasses.replace(ask, max_tokens=STEADY_TOKENS), own=(marker,))


async def _churn(bench: Bench, index: int) -> Reply | None:
    """Requests that end at a drawn length, or are hung up on, one after another."""
    tenant = tenant_at(bench, index)
    for _ in range(CHURN_TURNS):
        marker = bench.mint(tenant)
        lines = bench.random.randint(1, LINES)
        ask = quote_of(bench, marker, mark="beside", lines=lines)
        ask = dataclasses.replace(ask, max_tokens=bench.random.randint(1, CHURN_TOKENS_MAX))
        if bench.random.random() < CANCELLED_SHARE:
            ask = hanging_up(bench, ask)
        await bench.ask(tenant, ask, own=(marker,))
    return None


def distance(reference: str, text: str) -> float:
    """The share of the reference that is left when the first letter differs: 0 when the texts are equal."""
    if reference == text:
        return 0.0
    same = next(
        (index for index, (one, other) in enumerate(zip(reference, text, strict=False)) if one != other),
        min(len(reference), len(text)),
    )
    return 1 - same / max(len(reference), len(text))


def _outcome(bench: Bench, controls: Passes, probes: Passes, moved_alone: int) -> Outcome:
    threshold = fit_threshold(controls.distances, bench.random)
    if threshold is None or not probes.distances:
        why = (
            f"only {len(controls.distances)} answers beside plain load and {len(probes.distances)} beside "
            "churn came to their end: too few to fit a threshold"
        )
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    p_value = threshold.p_value(probes.distances)
    above = sum(one > threshold.value for one in probes.distances)
    said = (
        f"beside churn {above} of {len(probes.distances)} answers left their solo reference earlier than any "
        f"control of the first half did; of the second half {threshold.above} of {threshold.tested} did"
    )
    is_suspect = p_value <= SUSPECT_ALPHA
    smallest = detectable_rate(threshold.tested, control_rate=threshold.above / threshold.tested)
    return Outcome(
        verdict=Verdict.SUSPECT if is_suspect else Verdict.NO_EVIDENCE,
        why=said,
        opportunities=len(probes.distances),
        sensitivity=probes.shown / len(probes.distances) or None,
        co_residence=co_residence(bench.known),
        p_value=p_value,
        smallest_effect=f"{smallest:.0%} of answers that diverge",
        sightings=(_sighting(said, above, probes, threshold),) if is_suspect else (),
        notes=(f"alone, {moved_alone} of {STEADY} requests were answered in more than one way",),
    )


def _sighting(said: str, above: int, probes: Passes, threshold: Threshold) -> Sighting:
    return Sighting(
        code="KVF206",
        severity=Severity.MEDIUM,
        what=said,
        subject_key="churn",
        evidence={
            "answers": len(probes.distances),
            "above": above,
            "threshold": round(threshold.value, 4),
            "control_tested": threshold.tested,
            "control_above": threshold.above,
            "control_rate_upper_95": round(threshold.false_alarm_upper_95, 4),
        },
        rival="rounding: churn makes more different batches than plain load does",
    )


SCENARIO = Scenario(
    name="churn-steady",
    what="long greedy answers beside requests that stop at random",
    hazard=Hazard.ORDINARY,
    classes=("step-outlives-pages", "row-mixup", "padding-touches-live", "match-not-pinned"),
    oracle="a foreign marker; or divergence from the solo reference above a threshold fitted on controls",
    control="the same answers beside as many requests that neither stop nor leave, and alone",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
)
