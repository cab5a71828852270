"""long-recall: one fact in a long prompt, to be chosen among sixteen decoys; and the same in a short one.

A prompt whose middle was never written, or was written by somebody else, is answered fluently and wrongly. A
forced choice measures that without judging any text: a right answer has a chance of one in seventeen.

Rules it keeps:
- The short prompt is the control: a model that cannot choose there says nothing about the long one.
- Short, middle and long prompts take turns. A model that forgets does so more and more; a defect of long
  prompts begins somewhere. The middle length is reported, so that a reader can tell.
- The worst verdict is *suspect*: forgetting is no leak.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.boundary_plan import (
    CONTEXT_ASSUMED,
    CONTEXT_MIN,
    HEAVY_TOKENS,
    plan_s,
    wait_s,
)
from kvfence.check.scenarios.filler import filler, nonce
from kvfence.check.scenarios.saying import WORDS
from kvfence.check.statistics import detectable_rate, fisher_greater, lower_share
from kvfence.report import Cost, Severity, Verdict

DECOYS = 16
TRIES = 8  # of each length, a round
SHORT_TOKENS = 320
LONG_TOKENS_MAX = 65_536
ANSWER_TOKENS = 6
ABLE_SHARE = 0.75
LOST_SHARE = 0.5
ALPHA = 0.01
_LETTERS = "ABCDEFGHIJKLMNOPQ"
_LETTER = re.compile(r"\b([A-Q])\b")


@dataclass(frozen=True, slots=True)
class Choice:
    """A prompt with the letter and the word that answer it."""

    text: str
    tokens: int
    letter: str
    word: str
    options: tuple[str, ...]

    def is_right(self, reply: Reply) -> bool:
        """Whether the answer chooses the right one: by its letter, else by the only option that it names."""
        letter = _LETTER.search(reply.content)
        if letter is not None:
            return letter[1] == self.letter
        named = {option for option in self.options if option in reply.content.casefold()}
        return named == {self.word}


@dataclass(slots=True)
class Score:
    """Right answers among those that came, at one length."""

    tokens: int
    answers: int = 0
    right: int = 0

    def __str__(self) -> str:
        return f"{self.right} of {self.answers} right at {self.tokens:,} tokens"


def lengths_for(context: int) -> tuple[int, int, int]:
    """Short, middle and long."""
    long = min(context // 2, LONG_TOKENS_MAX)
    return min(SHORT_TOKENS, context // 4), context_root(min(SHORT_TOKENS, context // 4), long), long


def context_root(short: int, long: int) -> int:
    """The length that lies as many times above the short one as below the long one."""
    return round(sqrt(short * long))


def cost(known: Known, size: Size) -> Cost:
    """Each length as often as the others."""
    context = known.context_tokens or CONTEXT_ASSUMED
    if context < CONTEXT_MIN:
        return Cost()
    lengths, tries = lengths_for(context), TRIES * size.rounds
    return Cost(
        requests=len(lengths) * tries,
        prompt_tokens=sum(lengths) * tries,
        completion_tokens=len(lengths) * tries * ANSWER_TOKENS,
        seconds=sum(plan_s(length) + 1.0 for length in lengths) * tries,
    )


async def run(bench: Bench) -> Outcome:
    """Ask at the three lengths in turn, and compare the long one with the short one."""
    context = bench.known.context_tokens or CONTEXT_ASSUMED
    if context < CONTEXT_MIN:
        why = f"a context of {context} tokens has no long prompts"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    scores = [Score(length) for length in lengths_for(context)]
    for turn in range(TRIES * bench.size.rounds):
        for score in scores:
            await _try(bench, score)
        if turn + 1 == TRIES // 2 and scores[0].right < scores[0].answers / 2:
            break  # a model that cannot choose is not made to read long prompts
    return _outcome(*scores)


async def _try(bench: Bench, score: Score) -> None:
    choice = choice_of(score.tokens, bench.random, bench.known.counter.count)
    ask = Ask(
        prompt=choice.text,
        mark="control" if score.tokens <= SHORT_TOKENS else "probe",
        prompt_tokens=choice.tokens,
        max_tokens=ANSWER_TOKENS,
        is_heavy=score.tokens > HEAVY_TOKENS,
        timeout_s=wait_s(score.tokens),
    )
    reply = await bench.ask(bench.tenants[0], ask)
    if reply.is_answer:
        score.answers += 1
        score.right += choice.is_right(reply)


def choice_of(tokens: int, rng: random.Random, count: Callable[[str], int]) -> Choice:
    """A prompt of at most `tokens` tokens, the fact at a random depth, and seventeen options at its end."""
    options = rng.sample(WORDS, DECOYS + 1)
    index = rng.randrange(len(options))
    word, letter = options[index], _LETTERS[index]
    fact = f" The code word is {word}. "
    lines = "\n".join(f"{letter}) {one}" for letter, one in zip(_LETTERS, options, strict=True))
    question = f"\nWhich of these is the code word? Answer with its letter alone.\n{lines}\nLetter:"
    head = nonce(rng)
    body = filler(max(tokens - count(f"{head}{fact}{question}") - 2, 0), rng, count).split(" ")
    at = rng.randrange(len(body) // 10, max(len(body) * 9 // 10, 1) + 1)
    text = f"{head} {' '.join(body[:at])}{fact}{' '.join(body[at:])}{question}"
    return Choice(text, count(text), letter, word, tuple(options))


def _outcome(short: Score, middle: Score, long: Score) -> Outcome:
    why = f"{short}; {middle}; {long}"
    if not long.answers or not short.answers or short.right < ABLE_SHARE * short.answers:
        unable = "the model does not choose rightly even from a short prompt, or was not answered"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=f"{unable}: {why}")
    wrong_long, wrong_short = long.answers - long.right, short.answers - short.right
    p_value = fisher_greater(wrong_long, long.answers, wrong_short, short.answers)
    is_lost = p_value <= ALPHA and long.right <= LOST_SHARE * long.answers
    effect = f"wrong answers at a rate of {detectable_rate(long.answers):.0%}"
    sighting = Sighting(
        code="KVF218",
        severity=Severity.MEDIUM,
        what=why,
        subject_key="long-recall",
        evidence={
            "short_tokens": short.tokens,
            "short_right": short.right,
            "middle_tokens": middle.tokens,
            "middle_right": middle.right,
            "long_tokens": long.tokens,
            "long_right": long.right,
            "of_each": long.answers,
        },
        rival="a model that forgets in long prompts: compare it with the same model on a single node",
        smallest_effect=effect,
    )
    return Outcome(
        verdict=Verdict.SUSPECT if is_lost else Verdict.NO_EVIDENCE,
        why=why,
        opportunities=long.answers,
        co_residence=1.0,  # it is the prompt's own pages that are asked about
        sensitivity=lower_share(short.right, short.answers),
        p_value=p_value,
        smallest_effect=effect,
        sightings=(sighting,) if is_lost else (),
    )


SCENARIO = Scenario(
    name="long-recall",
    what="one fact in a long prompt, chosen among sixteen decoys",
    hazard=Hazard.HEAVY,
    classes=("false-completion", "rejected-continues", "offload-mixup"),
    oracle="wrong choices in long prompts, more than in short ones, by Fisher's test",
    control="the same choice in a short prompt, and in one of middle length",
    codes=("KVF218",),
    cost=cost,
    run=run,
)
