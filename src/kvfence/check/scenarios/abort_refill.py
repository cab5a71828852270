"""abort-refill: long prompts are hung up on in the middle of their prefill, and short ones take their pages.

Rules it keeps: a transfer that is still in flight when its pages are given back lands in whoever has them
next. So the moment of hanging up is drawn from the time that such a prefill was seen to take, and short
requests with markers of their own follow at once. The long prompts hold markers: late bytes say whose they
are. Others' requests may be hit by what this provokes: it runs only where that is allowed.
"""

import asyncio
import dataclasses

from kvfence.check.known import Known
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.quoting import (
    AT_ONCE,
    CONTROLS,
    LINES_MAX,
    Tally,
    judged,
    quote_of,
    quote_serially,
    quote_wave,
    quotes_cost,
    tenant_at,
)
from kvfence.check.together import together
from kvfence.report import Cost, Verdict

STORMS = 4  # a round, each with a wave of plain load as its control
STORM = 4
LONG_TOKENS_MAX = 2_048
TOKENS_A_LINE = 17
CONTEXT_IF_UNKNOWN = 8_192
EARLIEST, LATEST = 0.1, 0.9  # of a prefill's time
LONG_S = 30.0  # what a long prompt takes at most, for the plan


def long_lines(known: Known) -> int:
    """Lines of a long prompt: a quarter of the context, up to a bound."""
    tokens = min(LONG_TOKENS_MAX, (known.context_tokens or CONTEXT_IF_UNKNOWN) // 4)
    return max(LINES_MAX, tokens // TOKENS_A_LINE)


def cost(known: Known, size: Size) -> Cost:
    """The controls, one long prompt to its end, and the storms with their refills."""
    storms = STORMS * size.rounds
    long = quotes_cost(1 + storms * STORM, lines=long_lines(known), at_once=STORM)
    waves = quotes_cost(2 * storms * AT_ONCE, lines=LINES_MAX, at_once=AT_ONCE)
    waiting = Cost(seconds=LONG_S * (1 + storms))
    return quotes_cost(CONTROLS, lines=LINES_MAX) + long + waves + waiting


async def run(bench: Bench) -> Outcome:
    """Measure a long prefill, then cancel such ones and refill, again and again."""
    control, beside, probes, storm = await quote_serially(bench), Tally(), Tally(), Tally()
    reference = await _long(bench, bench.tenants[0], None, storm)
    if not reference.is_answer or reference.ttft_s is None:
        why = f"a prompt of {long_lines(bench.known)} lines was not answered: {reference.message}"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    for _ in range(STORMS * bench.size.rounds):
        await quote_wave(bench, beside)
        await _storm(bench, reference.ttft_s, storm, probes)
    if not storm.hung_up:
        why = f"no prefill could be hung up on: all {storm.answered} had ended before, or failed"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=probes.answered)
    notes = (f"{storm.hung_up} prefills of {reference.ttft_s:.2f} s were hung up on",)
    return judged(bench, probes, beside, control, key="refill", what="refills after aborts", notes=notes)


async def _storm(bench: Bench, prefill_s: float, storm: Tally, probes: Tally) -> None:
    """Long prompts that are hung up on at one drawn moment, and short ones in that moment."""
    at_s = prefill_s * bench.random.uniform(EARLIEST, LATEST)

    async def refill() -> None:
        await asyncio.sleep(at_s)
        await quote_wave(bench, probes)

    async def long(index: int) -> None:
        await _long(bench, tenant_at(bench, index), at_s, storm)

    await together([*(long(index) for index in range(STORM)), refill()])


async def _long(bench: Bench, tenant: str, hang_up_after_s: float | None, tally: Tally) -> Reply:
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="filler", lines=long_lines(bench.known))
    ask = dataclasses.replace(ask, hang_up_after_s=hang_up_after_s)
    reply = await bench.ask(tenant, ask, own=(marker,))
    tally.count(reply, marker)
    return reply


SCENARIO = Scenario(
    name="abort-refill",
    what="long prompts hung up on in mid-prefill, and short ones that take their pages",
    hazard=Hazard.MAY_HARM_OTHERS,
    classes=(
        "transfer-outlives-pages",
        "rejected-continues",
        "visible-before-written",
        "step-outlives-pages",
    ),
    oracle="a marker in an answer whose request was not given it; own markers lost more than in the control",
    control="waves as large of the same short requests, without a storm before them",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
)
