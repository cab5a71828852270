"""first-token: many requests at once, each with a first token of its own that the prompt forces.

The first token often travels by another way than the pages (a slot beside the transfer, a row of the last
prefill step). What is looked for is an answer that begins with the word of another request in flight,
whatever it goes on with. Where a short prompt's pages never came, it begins with what stood there.

Rules it keeps: words come back right one at a time first; two swaps are a leak, one is inconclusive.
"""

from kvfence.check.known import Known
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.saying import (
    Sayer,
    asks_cost,
    co_residence,
    find_sayer,
    first_word_of,
    sayer_cost,
)
from kvfence.check.statistics import lower_share
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

WORDS_NEEDED = 8
AT_ONCE = 16
BATCHES = 4
TOKENS = 4
SWAPS_MIN = 2


def cost(_known: Known, size: Size) -> Cost:
    """The serial control, and the batches."""
    probes = AT_ONCE * BATCHES * size.rounds
    return sayer_cost(WORDS_NEEDED) + asks_cost(probes, completion_tokens=TOKENS, at_once=AT_ONCE)


async def run(bench: Bench) -> Outcome:
    """Ask serially, then sixteen at once, and compare first words."""
    sayer = await find_sayer(bench, WORDS_NEEDED)
    if sayer is None:
        why = f"this model does not begin with {WORDS_NEEDED} words when asked for one at a time"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    answers = right = swaps = 0
    for _ in range(BATCHES * bench.size.rounds):
        for word, began in await _batch(bench, sayer):
            answers += 1
            right += began == word
            # A word counts as another's: each of the words is in flight in every batch.
            swaps += began is not None and began != word
    return _outcome(bench, sayer, answers, right, swaps)


async def _batch(bench: Bench, sayer: Sayer) -> list[tuple[str, str | None]]:
    """(word, word that the answer began with) of each answer of one batch."""
    words = list(sayer.words) * (AT_ONCE // len(sayer.words))
    bench.random.shuffle(words)
    replies = await together(
        bench.ask(
            bench.tenants[index % len(bench.tenants)],
            sayer.form.ask(word, mark="probe", max_tokens=TOKENS),
        )
        for index, word in enumerate(words)
    )
    return [
        (word, first_word_of(reply, sayer.words))
        for word, reply in zip(words, replies, strict=True)
        if reply.is_answer
    ]


def _outcome(bench: Bench, sayer: Sayer, answers: int, right: int, swaps: int) -> Outcome:
    tally = f"{answers} answers, {AT_ONCE} at once: {right} began with their own word, {swaps} with another's"
    verdict = Verdict.NO_EVIDENCE
    sightings: tuple[Sighting, ...] = ()
    if swaps >= SWAPS_MIN and not sayer.strays:
        verdict, sightings = Verdict.LEAK, (_sighting(tally, answers, right, swaps, sayer),)
    elif swaps or not right:
        verdict = Verdict.INCONCLUSIVE
    return Outcome(
        verdict=verdict,
        why=tally,
        opportunities=answers,
        sensitivity=lower_share(right, answers),
        co_residence=co_residence(bench.known),
        smallest_effect=f"{SWAPS_MIN} swaps in {answers} answers",
        sightings=sightings,
    )


def _sighting(tally: str, answers: int, right: int, swaps: int, sayer: Sayer) -> Sighting:
    return Sighting(
        code="KVF217",
        severity=Severity.CRITICAL,
        what=f"{tally}; asked one at a time, none did",
        subject_key="first-token",
        evidence={
            "answers": answers,
            "right": right,
            "swaps": swaps,
            "serial_answers": sayer.asked,
            "serial_swaps": sayer.strays,
        },
        rival="whole answers that went to the wrong caller: one-word and mixed-constraints tell these apart",
    )


SCENARIO = Scenario(
    name="first-token",
    what="sixteen requests at once, each with a forced first token of its own",
    hazard=Hazard.ORDINARY,
    classes=("control-slot-reuse", "row-mixup", "false-completion"),
    oracle="an answer that begins with the word of another request in flight, twice",
    control="the same words asked one at a time",
    codes=("KVF217",),
    cost=cost,
    run=run,
)
