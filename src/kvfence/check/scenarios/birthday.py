"""birthday: many prompts that differ, in the hope that two of them get one cache key.

A key of 16 bits gives two of three hundred prompts the same name, likelier than not. Whoever is second then
reads the first one's pages: its marker, which the bench looks for, or cached tokens that it cannot have.

Rules it keeps:
- Each prompt begins with a marker of its own, over several pages, and asks for it back.
- No prompt has anything in common with another but what the chat template adds. More cached tokens than that
  are counted as a collision, when it happens twice.
- The report says how long a key would have been found out. Real keys are longer: nothing here finds those.
"""

import math
from dataclasses import dataclass

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.markers import is_shown
from kvfence.check.markers_prompts import (
    QUOTE_TOKENS,
    copying_endpoint,
    prompt_tokens_max,
    prompts_for,
)
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.saying import co_residence
from kvfence.check.statistics import lower_share
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

PROMPTS = 96
AT_ONCE = 8
LINES = 6
TEMPLATE_TOKENS_MAX = 48
HITS_MIN = 2
ASK_S = 10.0


@dataclass(slots=True)
class Tally:
    """Answers, how many showed their own marker, and how many had more cached tokens than they can have."""

    answers: int = 0
    shown: int = 0
    counted: int = 0
    hits: int = 0


def cost(_known: Known, size: Size) -> Cost:
    """All prompts once."""
    prompts = PROMPTS * size.rounds
    return Cost(
        requests=prompts,
        prompt_tokens=prompts * prompt_tokens_max(LINES),
        completion_tokens=prompts * QUOTE_TOKENS,
        seconds=prompts / AT_ONCE * ASK_S,
    )


async def run(bench: Bench) -> Outcome:
    """Ask them all, eight at once, each by the next tenant."""
    tally = Tally()
    for first in range(0, PROMPTS * bench.size.rounds, AT_ONCE):
        await together(_one(bench, first + index, tally) for index in range(AT_ONCE))
    return _outcome(bench, tally)


async def _one(bench: Bench, index: int, tally: Tally) -> None:
    tenant = bench.tenants[index % len(bench.tenants)]
    marker = bench.mint(tenant)
    endpoint = copying_endpoint(bench.known)
    prompt = prompts_for(marker, endpoint, lines=LINES).plant
    ask = Ask(prompt=prompt, endpoint=endpoint, max_tokens=QUOTE_TOKENS)
    reply = await bench.ask(tenant, ask, own=(marker,))
    if not reply.is_answer:
        return
    tally.answers += 1
    tally.shown += is_shown(marker, reply.content)
    cached = reply.usage.cached_tokens
    if cached is not None:
        tally.counted += 1
        tally.hits += cached > TEMPLATE_TOKENS_MAX


def bits_found(prompts: int) -> float:
    """Keys of up to so many bits would have collided among so many prompts with a chance of 95 %."""
    return math.log2(prompts * (prompts - 1) / 2 / -math.log(0.05))


def _outcome(bench: Bench, tally: Tally) -> Outcome:
    if tally.answers < 2:
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=f"{tally.answers} prompts were answered")
    effect = f"keys of up to {bits_found(tally.answers):.0f} bits"
    why = (
        f"{tally.answers} different prompts: {tally.shown} brought their own marker back, none another's; "
        f"{tally.hits} of {tally.counted} had cached tokens that they cannot have; this finds {effect}"
    )
    sighting = Sighting(
        code="KVF213",
        severity=Severity.MEDIUM,
        what=why,
        subject_key="cached-by-another",
        evidence={"prompts": tally.answers, "counted": tally.counted, "hits": tally.hits},
        rival="a template of more tokens than were allowed for, cached honestly",
        smallest_effect=effect,
    )
    # A template that is longer than allowed for is cached for everybody; a collision is rare.
    is_rare = HITS_MIN <= tally.hits <= tally.counted / 4
    verdict = Verdict.NO_EVIDENCE
    if is_rare:
        verdict = Verdict.EXPOSED
    elif tally.hits and not is_rare:
        verdict = Verdict.INCONCLUSIVE
    return Outcome(
        verdict=verdict,
        why=why,
        opportunities=tally.answers,
        sensitivity=lower_share(tally.shown, tally.answers),
        co_residence=co_residence(bench.known),
        smallest_effect=effect,
        sightings=(sighting,) if is_rare else (),
    )


SCENARIO = Scenario(
    name="birthday",
    what="many different prompts, of which two may get one short cache key",
    hazard=Hazard.ORDINARY,
    classes=("key-collision", "response-misroute"),
    oracle="another prompt's marker; or cached tokens of a prompt that was never sent before",
    control="each prompt asks for its own marker: the share that brings it back",
    codes=("KVF201", "KVF213"),
    cost=cost,
    run=run,
)
