"""burst-prefix: the same long prompt several times in one instant, and again right after one was hung up on.

Rules it keeps: pages that are shown in a prefix index before they are written are read by whoever comes in
the same step, or right after an abort; so requests of one tenant with one prompt come together. The prompt
holds a marker, which each of them may quote; what the pages held before is another's. Bursts of different
prompts, as many at once, are the A/A control: a burst alone changes rounding.
"""

import dataclasses

from kvfence.check.known import Known
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.quoting import (
    CONTROLS,
    LINES_MAX,
    Tally,
    ask_all,
    judged,
    quote_of,
    quote_serially,
    quote_wave,
    quotes_cost,
    tenant_at,
)
from kvfence.report import Cost

BURSTS = 4  # a round, each with its control
BURST = 6
LINES = LINES_MAX
HANG_UP_MIN_S = 0.005


def cost(_known: Known, size: Size) -> Cost:
    """The control; then for each burst the control burst, the burst, one that is hung up on, and repeats."""
    requests = BURSTS * size.rounds * (2 * BURST + 1 + BURST)
    return quotes_cost(CONTROLS, lines=LINES) + quotes_cost(requests, lines=LINES, at_once=BURST // 2)


async def run(bench: Bench) -> Outcome:
    """Bursts of one prompt and bursts of many, in an order that a coin decides."""
    control, probes, beside = await quote_serially(bench), Tally(), Tally()
    for number in range(BURSTS * bench.size.rounds):
        is_plain_first = bench.random.random() < 0.5
        if is_plain_first:
            await quote_wave(bench, beside, at_once=BURST)
        await _burst(bench, probes, tenant_at(bench, number))
        if not is_plain_first:
            await quote_wave(bench, beside, at_once=BURST)
    return judged(bench, probes, beside, control, key="burst", what="bursts of one prompt")


async def _burst(bench: Bench, tally: Tally, tenant: str) -> None:
    """The same prompt at once; then a new one that is hung up on, and repeated at once."""
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="probe", lines=LINES)
    await ask_all(bench, [(tenant, ask, marker)] * BURST, tally)
    marker = bench.mint(tenant)
    ask = quote_of(bench, marker, mark="probe", lines=LINES)
    after_s = max(HANG_UP_MIN_S, bench.random.random() * bench.known.short_ttft_s)
    await ask_all(
        bench,
        [(tenant, dataclasses.replace(ask, mark="cancelled", hang_up_after_s=after_s), marker)],
        tally,
    )
    await ask_all(bench, [(tenant, ask, marker)] * BURST, tally)


SCENARIO = Scenario(
    name="burst-prefix",
    what="one long prompt several times in one instant, and right after one was hung up on",
    hazard=Hazard.ORDINARY,
    classes=("visible-before-written", "false-completion", "control-slot-reuse"),
    oracle="a marker in an answer whose request was not given it; own markers lost more than in the control",
    control="bursts as large of different prompts, and quoting one at a time",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
)
