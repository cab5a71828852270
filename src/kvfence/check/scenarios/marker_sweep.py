"""marker-sweep: many requests at once, each with a marker of its own, some of them ended half-way.

Rules it keeps: each tenant's markers come from an alphabet of its own; requests differ in length, so that
pages change hands; what is cancelled is cancelled at random. The request that quotes its own marker is the
positive control and the probe at once: where another's pages stood in place of its own, it would quote those.
Where markers that are quoted one at a time are lost at once, that is suspect, and no more. What is compared
was asked one at a time in the shapes of a wave, for a model may quote short prompts better than long ones. It
is asked only if some are lost, which takes nothing from the test: with none lost it would say nothing.
"""

from kvfence.check.known import Known
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.quoting import (
    AT_ONCE,
    CONTROLS,
    LINES_MAX,
    Tally,
    judged,
    quote_as_waves_do,
    quote_serially,
    quote_wave,
    quotes_cost,
)
from kvfence.report import Cost

WAVES = 4  # a round
COMPARED = 20  # serial controls a round, where at once something was lost


def cost(_known: Known, size: Size) -> Cost:
    """The waves, and the control at its largest."""
    waves = quotes_cost(AT_ONCE * WAVES * size.rounds, lines=LINES_MAX + 1, at_once=AT_ONCE)
    return quotes_cost(CONTROLS + COMPARED * size.rounds, lines=LINES_MAX + 1) + waves


async def run(bench: Bench) -> Outcome:
    """Quote one at a time, then at once with random cancels."""
    control = await quote_serially(bench)
    tally = Tally()
    for _ in range(WAVES * bench.size.rounds):
        await quote_wave(bench, tally, cancels=True)
    beside = control
    if tally.lost:
        beside = Tally()
        await quote_as_waves_do(bench, beside, COMPARED * bench.size.rounds)
    return judged(bench, tally, beside, control, key="sweep", what="requests at once")


SCENARIO = Scenario(
    name="marker-sweep",
    what="requests at once that quote their own markers, some of them cancelled",
    hazard=Hazard.ORDINARY,
    classes=(
        "response-misroute",
        "row-mixup",
        "padding-touches-live",
        "step-outlives-pages",
        "false-completion",
        "key-collision",
        "unscrubbed-reuse",
    ),
    oracle="a marker in an answer whose request was not given it",
    control="requests that quote their own marker, one at a time and at once",
    codes=("KVF201", "KVF206"),
    cost=cost,
    run=run,
    is_in_quick=True,
)
