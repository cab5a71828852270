"""The other half of identity-swap: the same tokens behind another beginning, under one model.

Keys and values of a page depend on everything before it. A cache whose key leaves that out gives a prompt the
pages of another one that merely goes on with the same words. It shows as cached tokens of a prompt whose
beginning was never sent: none of it can be cached but what the chat template adds.

Rules it keeps:
- Two beginnings are the same sentences in another order: what follows stands at the same places of its pages.
- A cache that looks up pages from the first one on would not show that. So a second pair has the same start,
  and one of the two has a middle of 256 tokens, a whole number of pages, that the other leaves out.
- A first sending that counts as cached says that the counts mean nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from kvfence.check.asks import Ask
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench
from kvfence.check.scenarios.filler import filler, sentence
from kvfence.report import Cost

ROUNDS = 4
ASKS = 5  # one beginning, the other, and the first again; with a middle, and without it
SENTENCES = 12
TAIL_SENTENCES = 40
MIDDLE_TOKENS = 256  # a whole number of pages of any usual size
JOINT_TOKENS = 144  # more than a page of any usual size
PADDING_TOKENS = 40  # of the middle: room to correct it by what the server counts
PROMPT_TOKENS = 1_024
ANSWER_TOKENS = 8
_PAD = " so"
HIT_SHARE = 0.7  # a start that both prompts have is less


@dataclass(slots=True)
class Chained:
    """Rounds with counts; hits of first sendings, behind another beginning, and of the first one's repeat."""

    rounds: int = 0
    fresh: int = 0
    hits: int = 0
    repeats: int = 0


def chain_cost(rounds: int) -> Cost:
    """Five requests a round."""
    asks = ASKS * ROUNDS * rounds
    return Cost(
        requests=asks,
        prompt_tokens=asks * PROMPT_TOKENS,
        completion_tokens=asks * ANSWER_TOKENS,
        seconds=asks * 5.0,
    )


def two_beginnings(rng: Random) -> tuple[str, str]:
    """Two prompts of one length that differ in the order of their first sentences."""
    head = [sentence(rng) for _ in range(SENTENCES)]
    other = head[:]
    while other[0] == head[0]:
        rng.shuffle(other)
    tail = " ".join(sentence(rng) for _ in range(TAIL_SENTENCES))
    return f"{' '.join(head)} {tail}", f"{' '.join(other)} {tail}"


@dataclass(slots=True)
class Middle:
    """What one prompt has and the other leaves out: `padding` small words make it a whole number of pages.

    It ends as the start does, over more than a page: so the page in which the end begins holds the same words
    in both prompts, wherever pages begin.
    """

    joint: str
    words: str
    padding: int

    def prompts(self, rng: Random) -> tuple[str, str]:
        """A new pair, with the middle and without it."""
        start, end = (
            " ".join(sentence(rng) for _ in range(length)) for length in (SENTENCES, TAIL_SENTENCES)
        )
        middle = self.words + _PAD * self.padding
        return f"{start} {self.joint} {middle} {self.joint} {end}", f"{start} {self.joint} {end}"

    def learn(self, long: Reply, cut: Reply) -> None:
        """Correct the padding by what the server itself counts."""
        counted, without = long.usage.prompt_tokens, cut.usage.prompt_tokens
        if counted is not None and without is not None:
            self.padding = max(0, self.padding + MIDDLE_TOKENS - (counted - without))


def middle_of(rng: Random, count: Callable[[str], int]) -> Middle:
    """A middle of MIDDLE_TOKENS by the run's own count."""
    joint = filler(JOINT_TOKENS, rng, count)
    words = filler(MIDDLE_TOKENS - JOINT_TOKENS - PADDING_TOKENS, rng, count)
    return Middle(joint, words, max(MIDDLE_TOKENS - count(f"{words} {joint}"), 0))


async def play_chain(bench: Bench) -> Chained:
    """Prime with one, ask with the other, and repeat the first; then the same around a middle."""
    chained = Chained()
    middle = middle_of(bench.random, bench.known.counter.count)
    for _ in range(ROUNDS * bench.size.rounds):
        one, other = two_beginnings(bench.random)
        long, cut = middle.prompts(bench.random)
        first = await _ask(bench, one, "control")
        swapped = await _ask(bench, other, "probe")
        again = await _ask(bench, one, "control")
        with_middle = await _ask(bench, long, "filler")
        without = await _ask(bench, cut, "probe")
        middle.learn(with_middle, without)
        hits = [_is_hit(reply) for reply in (first, swapped, without, again)]
        if None not in hits:
            chained.rounds += 1
            chained.fresh += bool(hits[0])
            chained.hits += bool(hits[1] or hits[2])
            chained.repeats += bool(hits[3])
    return chained


async def _ask(bench: Bench, prompt: str, mark: str) -> Reply:
    count = bench.known.counter.count(prompt)
    ask = Ask(prompt=prompt, mark=mark, prompt_tokens=count, max_tokens=ANSWER_TOKENS)
    return await bench.ask(bench.tenants[0], ask)


def _is_hit(reply: Reply) -> bool | None:
    """Whether most of the prompt was cached; None without an answer or without counts."""
    usage = reply.usage
    if not reply.is_answer or not usage.prompt_tokens or usage.cached_tokens is None:
        return None
    return usage.cached_tokens > HIT_SHARE * usage.prompt_tokens
