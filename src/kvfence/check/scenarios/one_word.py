"""one-word: four requests at once, each for a word of its own. The cheapest test of all.

Rules it keeps: the same words, one request at a time, come first. A word of another request that was in
flight counts as foreign; twice, and never one at a time, is a leak. A word that is merely missing is none:
batching may change what a model says, but not into a word that stands in no prompt of its own. Where words
stray one at a time as well, those that were sent are compared with those that never were.

What it sees of a hand-over that was called complete and was not: a prompt this short is a page or two. Where
they never came, the word that stands there is that of whoever had them last.
"""

from dataclasses import dataclass

from kvfence.check.known import Known
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.one_word_strays import P_MAX, Strays, strays_cost, whose_words
from kvfence.check.scenarios.saying import (
    Sayer,
    asks_cost,
    co_residence,
    find_sayer,
    heard_of,
    sayer_cost,
)
from kvfence.check.statistics import fisher_greater, lower_share
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

AT_ONCE = 4
BATCHES = 6  # a round; as many again when one foreign word was seen
FOREIGN_MIN = 2


@dataclass(slots=True)
class Tally:
    """Answers at once: `foreign` held the word of another in flight, `lost` neither that nor their own."""

    answers: int = 0
    right: int = 0
    foreign: int = 0
    lost: int = 0
    failed: int = 0

    def __str__(self) -> str:
        return f"{self.answers} answers at once: {self.right} right, {self.foreign} foreign, {self.lost} lost"


def cost(_known: Known, size: Size) -> Cost:
    """The serial control, the batches twice over, and the control again."""
    batches = 2 * BATCHES * size.rounds
    at_once = asks_cost(AT_ONCE * batches, at_once=AT_ONCE)
    return sayer_cost(AT_ONCE) + at_once + asks_cost(AT_ONCE) + strays_cost()


async def run(bench: Bench) -> Outcome:
    """Ask serially, then at once, and look for words that changed hands."""
    sayer = await find_sayer(bench, AT_ONCE)
    if sayer is None:
        why = f"this model does not repeat {AT_ONCE} words when asked for one at a time"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    tally = Tally()
    await _batches(bench, sayer, tally)
    if tally.foreign == 1:
        await _batches(bench, sayer, tally)
    strays = sayer.strays
    if tally.foreign:
        strays += await _serially_again(bench, sayer)
    if tally.foreign and strays:
        return _stray(bench, tally, strays, await whose_words(bench, sayer))
    return _outcome(bench, sayer, tally)


async def _batches(bench: Bench, sayer: Sayer, tally: Tally) -> None:
    for _ in range(BATCHES * bench.size.rounds):
        words = bench.random.sample(sayer.words, AT_ONCE)
        tenants = [bench.tenants[index % len(bench.tenants)] for index in range(AT_ONCE)]
        replies = await together(
            bench.ask(tenant, sayer.form.ask(word, mark="probe"))
            for tenant, word in zip(tenants, words, strict=True)
        )
        for word, reply in zip(words, replies, strict=True):
            if not reply.is_answer:
                tally.failed += 1
                continue
            found = heard_of(reply, words)
            tally.answers += 1
            tally.foreign += bool(found - {word})
            tally.right += found == {word}
            tally.lost += not found


async def _serially_again(bench: Bench, sayer: Sayer) -> int:
    """Answers with a foreign word when the same is asked one at a time."""
    strays = 0
    for word in sayer.words:
        reply = await bench.ask(bench.tenants[0], sayer.form.ask(word, mark="control"))
        strays += bool(heard_of(reply, sayer.words) - {word})
    return strays


def _stray(bench: Bench, tally: Tally, serial: int, strays: Strays) -> Outcome:
    """Words come back to requests for others, one at a time too: made up, or handed on?"""
    what = (
        f"{tally.foreign} of {tally.answers} answers held another's word, and {serial} asked one at a time; "
        f"{strays}"
    )
    if strays.p_value > P_MAX:
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=what, opportunities=tally.answers)
    sighting = Sighting(
        code="KVF212",
        severity=Severity.HIGH,
        what=what,
        subject_key="words-handed-on",
        evidence={
            "sent_came_back": strays.sent,
            "sent": strays.sent_of,
            "never_sent_came_back": strays.never_sent,
            "never_sent": strays.never_sent_of,
        },
        rival="nothing of the model's: which words were sent was drawn at random",
    )
    return Outcome(
        verdict=Verdict.SUSPECT,
        why=what,
        opportunities=tally.answers,
        co_residence=co_residence(bench.known),
        p_value=strays.p_value,
        smallest_effect=f"{strays.needed} of {strays.sent_of} words that were sent, and none that was not",
        sightings=(sighting,),
    )


def _outcome(bench: Bench, sayer: Sayer, tally: Tally) -> Outcome:
    if tally.foreign >= FOREIGN_MIN:
        return _leak(bench, sayer, tally)
    if tally.foreign:
        why = f"{tally.foreign} of {tally.answers} answers held another's word"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why, opportunities=tally.answers)
    if not tally.right:
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=f"{tally}, {tally.failed} failed")
    if tally.lost:
        return _changed(bench, sayer, tally)
    return _calm(bench, tally)


def _leak(bench: Bench, sayer: Sayer, tally: Tally) -> Outcome:
    what = (
        f"{tally.foreign} of {tally.answers} answers to one-word tasks at once held the word of another "
        "request that was in flight; asked one at a time, none did"
    )
    sighting = Sighting(
        code="KVF212",
        severity=Severity.CRITICAL,
        what=what,
        subject_key="one-word",
        evidence={
            "answers": tally.answers,
            "right": tally.right,
            "foreign": tally.foreign,
            "lost": tally.lost,
            "serial_answers": sayer.asked + AT_ONCE,
            "serial_foreign": 0,
        },
        rival="a gateway or client pool that hands answers to the wrong caller would look the same",
    )
    return Outcome(
        verdict=Verdict.LEAK,
        why=what,
        opportunities=tally.answers,
        sensitivity=sayer.right_share,
        co_residence=co_residence(bench.known),
        sightings=(sighting,),
    )


def _changed(bench: Bench, sayer: Sayer, tally: Tally) -> Outcome:
    """Words that were right one at a time and are missing at once: a defect of batches, perhaps."""
    p_value = fisher_greater(tally.lost, tally.answers, 0, len(sayer.words))
    what = f"{tally}; one at a time all of these words came back"
    sighting = Sighting(
        code="KVF206",
        severity=Severity.MEDIUM,
        what=what,
        subject_key="lost-words",
        evidence={"answers": tally.answers, "lost": tally.lost, "serial_right": len(sayer.words)},
        rival="rounding by batch size, which may change what a model says next",
    )
    return Outcome(
        verdict=Verdict.SUSPECT,
        why=what,
        opportunities=tally.answers,
        sensitivity=lower_share(tally.right, tally.answers),
        co_residence=co_residence(bench.known),
        p_value=p_value,
        sightings=(sighting,),
    )


def _calm(bench: Bench, tally: Tally) -> Outcome:
    return Outcome(
        verdict=Verdict.NO_EVIDENCE,
        why=f"{tally}",
        opportunities=tally.answers,
        sensitivity=lower_share(tally.right, tally.answers),
        co_residence=co_residence(bench.known),
        smallest_effect=f"{FOREIGN_MIN} foreign words in {tally.answers} answers",
    )


SCENARIO = Scenario(
    name="one-word",
    what="four one-word tasks at once, each with a word of its own",
    hazard=Hazard.ORDINARY,
    classes=("row-mixup", "response-misroute", "control-slot-reuse", "false-completion"),
    oracle="a word of another request that was in flight, twice, and never when asked one at a time",
    control="the same words asked one at a time, before and after",
    codes=("KVF212", "KVF206"),
    cost=cost,
    run=run,
    is_in_quick=True,
)
