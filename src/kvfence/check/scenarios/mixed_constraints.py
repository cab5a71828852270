"""mixed-constraints: requests at once, each with a constraint of its own; each answer must obey its own.

Three kinds stand side by side: a `max_tokens` of its own, a stop string inside the word that it is made to
say, and a word of its own. What bounds a request lies in rows of a batch; a row that moved bounds another.

Rules it keeps:
- Each request is asked alone first. A kind that is not obeyed there is not asked at once: a server that has
  no stop strings mixes none up.
- More tokens than `max_tokens` has no innocent explanation; one is enough to be said, two are a leak.
- The stream is closed by us soon after its limit: an answer without end would cost the user money.
"""

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum, unique

from kvfence.check.asks import Ask
from kvfence.check.known import Known
from kvfence.check.reply import Failure, Reply
from kvfence.check.scenario import Bench, Hazard, Outcome, Scenario, Sighting, Size
from kvfence.check.scenarios.saying import (
    ANSWER_TOKENS,
    PREFIX_LETTERS,
    Sayer,
    asks_cost,
    co_residence,
    find_sayer,
    heard_of,
    sayer_cost,
)
from kvfence.check.statistics import lower_share
from kvfence.check.together import together
from kvfence.report import Cost, Severity, Verdict

WORDS_NEEDED = 5  # three to stop inside, two to say
STOPPED = 3
LIMITS = (5, 9, 17)
BATCHES = 5
SLACK_CHUNKS = 2  # some servers send a piece of text without a token of its own
LEAVE_AFTER_CHUNKS = 16
COUNTING = "Count from one to one hundred in words, and do not stop before the end."
BREACHES_MIN = 2


@unique
class Kind(StrEnum):
    """What bounds a request."""

    LIMIT = "max_tokens"
    STOP = "stop string"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Task:
    """One request and what its answer must keep. `word` is None for a LIMIT."""

    kind: Kind
    ask: Ask
    word: str | None = None

    def is_broken_by(self, reply: Reply, words: tuple[str, ...]) -> bool:
        """Whether an answer breaks its own constraint, or holds another's word."""
        if self.kind is Kind.LIMIT:
            return is_over(reply, self.ask.max_tokens or 0)
        has_foreign = bool(heard_of(reply, words) - {self.word})
        return has_foreign or any(stop in reply.content.casefold() for stop in self.ask.stop)


def is_over(reply: Reply, max_tokens: int) -> bool:
    """Whether more tokens came than were asked for, by the server's count or by pieces of the stream."""
    counted = reply.usage.completion_tokens
    if counted is not None:
        return counted > max_tokens
    return len(reply.chunk_times_s) > max_tokens + SLACK_CHUNKS


def _counting(limit: int) -> Ask:
    leave = limit + LEAVE_AFTER_CHUNKS
    return Ask(prompt=COUNTING, mark="probe", max_tokens=limit, hang_up_after_chunks=leave)


def tasks_of(sayer: Sayer) -> tuple[Task, ...]:
    """All tasks of a batch."""
    limits = [Task(Kind.LIMIT, _counting(limit)) for limit in LIMITS]
    stops = [
        Task(
            Kind.STOP,
            replace(sayer.form.ask(word, mark="probe"), stop=(word[PREFIX_LETTERS:],)),
            word,
        )
        for word in sayer.words[:STOPPED]
    ]
    words = [Task(Kind.WORD, sayer.form.ask(word, mark="probe"), word) for word in sayer.words[STOPPED:]]
    return (*limits, *stops, *words)


def cost(_known: Known, size: Size) -> Cost:
    """The words, each task alone, and the batches."""
    batch = len(LIMITS) + WORDS_NEEDED
    tokens = max(*LIMITS, ANSWER_TOKENS)
    return sayer_cost(WORDS_NEEDED) + asks_cost(batch * (1 + BATCHES * size.rounds), completion_tokens=tokens)


async def run(bench: Bench) -> Outcome:
    """Ask each task alone, then all at once, and look at who obeyed what."""
    sayer = await find_sayer(bench, WORDS_NEEDED)
    if sayer is None:
        why = f"this model does not repeat {WORDS_NEEDED} words when asked for one at a time"
        return Outcome(verdict=Verdict.INCONCLUSIVE, why=why)
    alone = await _alone(bench, sayer)
    if alone[Kind.LIMIT]:
        return _ignored(alone[Kind.LIMIT])
    tasks = tuple(task for task in tasks_of(sayer) if not alone[task.kind])
    broken: Counter[Kind] = Counter()
    answers = 0
    for _ in range(BATCHES * bench.size.rounds):
        batch = bench.random.sample(tasks, len(tasks))
        replies = await together(
            bench.ask(bench.tenants[index % len(bench.tenants)], task.ask) for index, task in enumerate(batch)
        )
        for task, reply in zip(batch, replies, strict=True):
            # A stream that we left was still an answer up to there.
            if reply.is_answer or reply.failure is Failure.HUNG_UP:
                answers += 1
                broken[task.kind] += task.is_broken_by(reply, sayer.words)
    return _outcome(bench, tasks, answers, broken, alone)


async def _alone(bench: Bench, sayer: Sayer) -> Counter[Kind]:
    """How many tasks of each kind are broken, or not answered, when nothing else is in flight."""
    broken: Counter[Kind] = Counter()
    for task in tasks_of(sayer):
        reply = await bench.ask(bench.tenants[0], replace(task.ask, mark="control"))
        is_answered = reply.is_answer or reply.failure is Failure.HUNG_UP
        broken[task.kind] += task.is_broken_by(reply, sayer.words) or not is_answered
    return broken


def _ignored(broken: int) -> Outcome:
    what = f"{broken} of {len(LIMITS)} answers were longer than their max_tokens with nothing else in flight"
    sighting = Sighting(
        code="KVF211",
        severity=Severity.HIGH,
        what=what,
        subject_key="max-tokens-ignored",
        evidence={"asked": len(LIMITS), "over": broken, "at_once": 1},
        rival="a server or gateway that ignores this field; rows that were mixed up are not needed for it",
    )
    return Outcome(verdict=Verdict.EXPOSED, why=what, opportunities=len(LIMITS), sightings=(sighting,))


def _outcome(
    bench: Bench, tasks: tuple[Task, ...], answers: int, broken: Counter[Kind], alone: Counter[Kind]
) -> Outcome:
    total = broken.total()
    left_out = tuple(
        f"{kind} is not obeyed even alone, and was left out" for kind in Kind if alone[kind] and kind in Kind
    )
    told = (
        ", ".join(f"{count} broke their {kind}" for kind, count in broken.items() if count) or "each obeyed"
    )
    why = f"{answers} answers, {len(tasks)} at once with constraints of their own: {told or 'each obeyed'}"
    verdict = Verdict.INCONCLUSIVE if total or not answers else Verdict.NO_EVIDENCE
    sightings: tuple[Sighting, ...] = ()
    if total >= BREACHES_MIN:
        verdict, sightings = Verdict.LEAK, (_sighting(why, answers, broken, len(tasks)),)
    elif broken[Kind.LIMIT]:
        verdict, sightings = Verdict.EXPOSED, (_sighting(why, answers, broken, len(tasks)),)
    return Outcome(
        verdict=verdict,
        why=why,
        opportunities=answers,
        sensitivity=lower_share(len(tasks), len(LIMITS) + WORDS_NEEDED),
        co_residence=co_residence(bench.known),
        smallest_effect=f"{BREACHES_MIN} of {answers} answers",
        sightings=sightings,
        notes=left_out,
    )


def _sighting(why: str, answers: int, broken: Counter[Kind], at_once: int) -> Sighting:
    is_limit_alone = broken[Kind.LIMIT] == broken.total()
    return Sighting(
        code="KVF211" if is_limit_alone else "KVF212",
        severity=Severity.HIGH,
        what=f"{why}; asked one at a time, all of them did",
        subject_key="constraints-at-once",
        evidence={
            "answers": answers,
            "at_once": at_once,
            **{f"broken_{kind.name.lower()}": broken[kind] for kind in Kind},
        },
        rival="a count of tokens that is wrong under load; the words and stop strings do not depend on it",
    )


SCENARIO = Scenario(
    name="mixed-constraints",
    what="requests at once, each with its own max_tokens, stop string or word",
    hazard=Hazard.ORDINARY,
    classes=("row-mixup", "response-misroute"),
    oracle="an answer longer than its own max_tokens, past its own stop string, or with another's word",
    control="each of the same requests alone",
    codes=("KVF211", "KVF212"),
    cost=cost,
    run=run,
)
