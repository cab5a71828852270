"""Counting tokens of a server whose tokenizer is not here, and text of a wanted length.

Rules it keeps:
- `count(text)` is what a request with this prompt should say as its `prompt_tokens`: the chat template is in
  it.
- Counters are measured on the server, by the best that it has: its tokenize endpoint, else its usage counts
  on prompts of known words. Where it has neither, tokens are estimated from bytes, within 20 %, and that is
  said.
- Counts that cannot be true measure nothing: common words are about a token each for every tokenizer. Usage
  counts that contradict the tokenize endpoint are left aside.
- `error` is what a sample that was not used for measuring was missed by, as a share.
- A prompt of token ids is as long as it is; that needs no counter.
"""

import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec

from kvfence.check.asks import Ask
from kvfence.check.client import ProbingClient
from kvfence.check.known import TokenCounter
from kvfence.check.read_reply_parts import as_count, as_list, as_object
from kvfence.check.reply import Reply
from kvfence.check.tokens_pieces import Pieces, Weights, counting, pieces_of, weigh
from kvfence.check.tokens_words import MORE_WORDS, STARTS, WORDS

BYTES_ERROR = 0.2
BYTES_OF_A_TOKEN = 4
SHORT_WORDS = 16
SAMPLE_WORDS = 256
FEW_WORDS = 96
# Ids that are ordinary tokens in every vocabulary of today: above the bytes and the control tokens, below the
# smallest vocabulary's end.
IDS_FROM, IDS_TO = 1_000, 20_000
# Less than this off one: each word is one token, and what is left is the template's rounding.
_ONE_WITHIN = 0.002
# Tokens that a common word may have in the mean. Counts outside of it are no counts of what was sent.
_WORD_MIN, _WORD_MAX = 0.75, 1.75
# Counts that miss a sample by more than this contradict each other.
_ERROR_MAX = 0.3
_SHORT = " ".join([STARTS[0], *WORDS[: SHORT_WORDS - 1]])
_ODD_SAMPLE = 'Zygote quixotic flummoxed: 7f3c9a, 2048; wyvern-like "ramshackle" (brouhaha) & 31,4159 lumps!'

Measure = Callable[[str], Awaitable[int | None]]


def words_of(tokens: int, rng: random.Random) -> str:
    """Return text of so many common words, each of which is one token for nearly every tokenizer.

    It says nothing, no word follows itself, and nothing longer than a few words comes twice.
    """
    if tokens <= 0:
        return ""
    words = [rng.choice(STARTS), *rng.choices(WORDS, k=tokens - 1)]
    for position in range(1, tokens):
        while words[position] == words[position - 1]:
            words[position] = rng.choice(WORDS)
    return " ".join(words)


def ids_of(tokens: int, rng: random.Random) -> tuple[int, ...]:
    """Return a prompt of so many ordinary token ids."""
    return tuple(rng.choices(range(IDS_FROM, IDS_TO), k=tokens))


def by_bytes() -> TokenCounter:
    """Return the counter for a server that tells nothing."""
    return TokenCounter(
        count=lambda text: -(-len(text.encode()) // BYTES_OF_A_TOKEN), how="bytes", error=BYTES_ERROR
    )


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What was measured: tokens of prompts whose pieces are known; the lists were taken up to `words`."""

    words: int
    short: int
    many: int
    more: int
    odd: int


async def learn_counter(
    client: ProbingClient, tenant: str, rng: random.Random, *, is_thorough: bool = True
) -> TokenCounter:
    """Return the best counter that the server allows, measured by a few tiny requests.

    `is_thorough`: every word of both lists is looked at, which takes 1,500 tokens in place of 500.
    """
    tokenize = await _tokenizer(client, tenant)
    measures: list[tuple[str, Measure]] = [] if tokenize is None else [("tokenize", tokenize)]
    usage = _usage(client, tenant)
    for how, measure in [*measures, ("usage", usage)]:
        around = usage if how == "tokenize" else None
        found = await calibrated(measure, rng, how=how, around=around, is_thorough=is_thorough)
        if found is not None:
            return found
    return by_bytes()


async def calibrated(
    measure: Measure, rng: random.Random, *, how: str, around: Measure | None = None, is_thorough: bool = True
) -> TokenCounter | None:
    """Return a counter whose weights were measured, or None where nothing is told.

    `around` measures whole requests, where `measure` counts bare texts and knows no template.
    """
    # The larger sample is more than the smallest contexts hold.
    for words in (len(WORDS), FEW_WORDS) if is_thorough else (FEW_WORDS,):
        sizes = await _sizes(measure, words)
        if sizes is None:
            continue
        weights = _weights(sizes)
        if not _WORD_MIN <= weights.word <= _WORD_MAX:
            continue
        whole = None if around is None else await around(_SHORT)
        if whole is not None:
            weights = _with_overhead(weights, whole)
        sample = words_of(min(SAMPLE_WORDS, words), rng)
        told = await (measure if around is None or whole is None else around)(sample)
        error = BYTES_ERROR if told is None else abs(weigh(sample, weights) - told) / max(told, 1)
        if error > _ERROR_MAX:
            return None if whole is None else await calibrated(measure, rng, how=how, is_thorough=is_thorough)
        return TokenCounter(count=counting(weights), how=how, error=round(error, 4))
    return None


async def _sizes(measure: Measure, words: int) -> _Sizes | None:
    many = " ".join([STARTS[0], *spread(WORDS, words)])
    more = " ".join(spread(MORE_WORDS, words))
    texts = (_SHORT, many, f"{_SHORT} {more}", f"{_SHORT} {_ODD_SAMPLE}")
    found = []
    for text in texts:
        size = await measure(text)
        if size is None:
            return None
        found.append(size)
    sizes = _Sizes(words, *found)
    return sizes if sizes.many > sizes.short else None


def spread(words: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return about so many of the words, from the whole list."""
    return words[:: max(1, len(words) // count)]


def _weights(sizes: _Sizes) -> Weights:
    many = len(spread(WORDS, sizes.words)) + 1
    word = _near_one((sizes.many - sizes.short) / (many - SHORT_WORDS))
    overhead = sizes.short - word * SHORT_WORDS
    more = _near_one((sizes.more - sizes.short) / len(spread(MORE_WORDS, sizes.words)))
    odd: Pieces = pieces_of(_ODD_SAMPLE)
    rest = (sizes.odd - sizes.short - word * odd.words - more * odd.more_words) / max(odd.rest, 1)
    return Weights(word=word, more_word=more, rest=max(rest, 0.1), overhead=overhead)


def _near_one(weight: float) -> float:
    return 1.0 if math.isclose(weight, 1.0, abs_tol=_ONE_WITHIN) else weight


def _with_overhead(weights: Weights, whole: int) -> Weights:
    bare = weigh(_SHORT, weights) - weights.overhead
    return replace(weights, overhead=whole - bare)


def _usage(client: ProbingClient, tenant: str) -> Measure:
    async def measure(text: str) -> int | None:
        reply = await client.ask(tenant, Ask(prompt=text, mark="counting", max_tokens=1, is_streaming=False))
        return reply.usage.prompt_tokens if reply.is_answer else None

    return measure


async def _tokenizer(client: ProbingClient, tenant: str) -> Measure | None:
    """Return the server's tokenize endpoint as a measure, in the form that it takes."""
    root = client.address.root
    model = client.manner.model
    forms: tuple[Callable[[str], dict[str, object]], ...] = (
        lambda text: {"model": model, "prompt": text},  # vLLM, SGLang
        lambda text: {"content": text, "add_special": False},  # llama.cpp
    )
    for form in forms:

        async def measure(text: str, form: Callable[[str], dict[str, object]] = form) -> int | None:
            return tokens_in(await client.fetch(tenant, f"{root}/tokenize", form(text)))

        if await measure(WORDS[0]):
            return measure
    return None


def tokens_in(reply: Reply) -> int | None:
    """Return how many tokens a tokenize endpoint counted, None for any other answer."""
    answer = json_of(reply)
    counted = as_count(answer.get("count"))
    return counted if counted is not None else len(as_list(answer.get("tokens"))) or None


def json_of(reply: Reply) -> dict[str, object]:
    """Return the JSON object that was fetched, empty where there is none."""
    if reply.status is None or not 200 <= reply.status < 300:
        return {}
    raw = next((text.text for text in reply.texts if text.place == "error"), "")
    try:
        return dict(as_object(msgspec.json.decode(raw)))
    except (msgspec.DecodeError, RecursionError):
        return {}
