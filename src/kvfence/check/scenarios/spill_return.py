"""spill-return: conversations that go to a lower tier, short requests beside them, and the way back.

Rules it keeps: a lower tier (memory, disk, a store) that restores the wrong entry shows in two places: in a
short request that has nothing to do with any conversation, and in a conversation that comes back. Both are
asked under load, many times. Cached counts prove nothing here: wrong answers were seen with a count of 0.
"""

import dataclasses

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.markers import Marker
from kvfence.check.markers_prompts import QUOTE_TOKENS, bait_for, copying_endpoint
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Size
from kvfence.check.scenarios.quoting import (
    AT_ONCE,
    CONTROLS,
    LINES_MAX,
    Tally,
    ask_all,
    calm,
    quote_of,
    quote_serially,
    quote_wave,
    quotes_cost,
    tenant_at,
)
from kvfence.check.together import together
from kvfence.report import Cost

CONVERSATIONS = 4  # a round
BAIT_WAVES = 4
BAITS = 3  # of a wave, beside two quoting requests
BESIDE = 2
SPILL_WAVES = 2  # of AT_ONCE, to push conversations out


def cost(_known: Known, size: Size) -> Cost:
    """Control; conversations, what pushes them out, baits beside others, and the way back; each round."""
    a_round = 2 * CONVERSATIONS + SPILL_WAVES * AT_ONCE + BAIT_WAVES * (BAITS + BESIDE)
    waves = quotes_cost(size.rounds * a_round, lines=LINES_MAX + 1, at_once=1)
    return quotes_cost(CONTROLS, lines=LINES_MAX) + waves


async def run(bench: Bench) -> Outcome:
    """Round after round: talk, push out, bait, come back."""
    control, tally = await quote_serially(bench), Tally()
    baits = 0
    for _ in range(bench.size.rounds):
        talks = await _talk(bench, tally)
        for _ in range(SPILL_WAVES):
            await quote_wave(bench, tally)
        for _ in range(BAIT_WAVES):
            baits += await _bait(bench, tally)
        await _come_back(bench, talks, tally)
    outcome = calm(bench, tally, control, notes=(f"{baits} short requests held no marker at all",))
    # A bait shows another's words as readily as a quoting request shows its own: both are opportunities.
    return dataclasses.replace(outcome, opportunities=outcome.opportunities + baits)


async def _talk(bench: Bench, tally: Tally) -> list[tuple[str, Ask, Marker]]:
    """Conversations to their end, one after another."""
    talks = []
    for index in range(CONVERSATIONS):
        tenant = tenant_at(bench, index)
        marker = bench.mint(tenant)
        ask = quote_of(bench, marker, mark="probe", lines=LINES_MAX)
        await ask_all(bench, [(tenant, ask, marker)], tally)
        talks.append((tenant, ask, marker))
    return talks


async def _bait(bench: Bench, tally: Tally) -> int:
    """Short requests without a marker, and quoting ones beside them; returns how many baits were answered."""
    endpoint = copying_endpoint(bench.known)
    bait = Ask(prompt=bait_for(endpoint), mark="bait", endpoint=endpoint, max_tokens=QUOTE_TOKENS)
    answered = 0

    async def ask_bait(index: int) -> None:
        nonlocal answered
        reply = await bench.ask(tenant_at(bench, index), bait)
        answered += reply.is_answer

    await together([quote_wave(bench, tally, at_once=BESIDE), *(ask_bait(index) for index in range(BAITS))])
    return answered


async def _come_back(bench: Bench, talks: list[tuple[str, Ask, Marker]], tally: Tally) -> None:
    """Each conversation goes on where it was, all at once: its text, and one line more of the same."""
    again = [
        (tenant, dataclasses.replace(ask, prompt=f"{ask.prompt}{marker.text}\n"), marker)
        for tenant, ask, marker in talks
    ]
    await ask_all(bench, again, tally)


SCENARIO = Scenario(
    name="spill-return",
    what="conversations pushed to a lower tier, short requests beside them, and the way back",
    hazard=Hazard.ORDINARY,
    classes=("offload-mixup", "unscrubbed-reuse", "key-collision"),
    oracle="a marker in an answer whose request was not given it",
    control="requests that quote their own marker; short requests hold none",
    codes=("KVF201",),
    cost=cost,
    run=run,
)
