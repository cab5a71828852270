"""What a server does with small requests: logprobs, echo, token ids, timing, sameness, obedience.

Rules it keeps:
- Each trait is one question with a few tiny requests, and says how it was answered.
- Equal answers are looked for twice: one after another on a server that is quiet for us, and all at once.
  The second may differ on a healthy server, since batching changes rounding.
"""

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.markers import Marker
from kvfence.check.markers_prompts import prompts_for
from kvfence.check.probing import Probing, said_of
from kvfence.check.reply import Reply
from kvfence.check.tokens import ids_of, words_of

REPEATS = 5
SAME_TOKENS = 4
TRIES, GOOD_FROM = 3, 2
WORD_TOKENS = 8
IDS = 12
COPIED_WORDS = 6
COPIED_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Time to first token of equal short requests, one at a time: their median, and their spread."""

    short_ttft_s: float
    noise_floor_s: float
    is_same: bool


async def has_logprobs(probing: Probing) -> bool:
    """Whether answers come with log-probabilities."""
    reply = await probing.teach(Ask(prompt="Say hello.", max_tokens=2, wants_logprobs=True))
    found = reply.is_answer and bool(reply.top_logprobs)
    probing.say("logprobs", found, "asked for five a position: " + _with(reply, found, "none in the answer"))
    return found


async def has_echo(probing: Probing) -> bool:
    """Whether the completions endpoint can give the prompt back. That alone says nothing bad."""
    text = words_of(6, probing.rng)
    ask = Ask(
        prompt=text,
        endpoint=Endpoint.COMPLETIONS,
        max_tokens=1,
        is_streaming=False,
        extra_body={"echo": True},
    )
    reply = await probing.ask(ask)
    found = reply.is_answer and text in reply.content
    probing.say("echo", found, _with(reply, found, "the prompt was not given back"))
    return found


async def takes_ids(probing: Probing) -> bool:
    """Whether the completions endpoint takes a prompt of token ids, and counts it as what it is."""
    ask = Ask(
        prompt=ids_of(IDS, probing.rng), endpoint=Endpoint.COMPLETIONS, max_tokens=1, is_streaming=False
    )
    reply = await probing.ask(ask)
    counted = reply.usage.prompt_tokens
    # Some servers put their first token before it.
    found = reply.is_answer and (counted is None or IDS <= counted <= IDS + 1)
    probing.say("token_ids", found, _with(reply, found, f"{IDS} ids were counted as {counted}"))
    return found


def _with(reply: Reply, found: bool, otherwise: str) -> str:  # noqa: FBT001
    return said_of(reply) if found or not reply.is_answer else otherwise


async def timing(probing: Probing, *, has_batch: bool = True) -> Timing | None:
    """Time equal requests one at a time, then ask them all at once. None where they are not answered."""
    ask = Ask(prompt="Count from one to twenty in words.", max_tokens=SAME_TOKENS)
    serial = [await probing.ask(ask) for _ in range(REPEATS)]
    batched = await asyncio.gather(*(probing.ask(ask) for _ in range(REPEATS if has_batch else 0)))
    times = [reply.ttft_s for reply in serial[1:] if reply.ttft_s is not None]
    if not times or not all(reply.is_answer for reply in serial):
        failed = next((reply for reply in serial if not reply.is_answer), serial[0])
        for name in ("noise_floor_s", "deterministic", "deterministic_batched"):
            probing.say(name, None, f"short requests were not all answered: {said_of(failed)}")
        return None
    floor, short = max(times) - min(times), statistics.median(times)
    how = f"{len(times)} equal short requests, one at a time, after one that was not counted"
    probing.say("short_ttft_s", round(short, 4), f"the median of {how}")
    probing.say("noise_floor_s", round(floor, 4), f"from the fastest to the slowest of {how}")
    is_same = _same(probing, "deterministic", serial, serial, "one at a time")
    if has_batch:
        _same(probing, "deterministic_batched", serial[:1], list(batched), "all at once")
    return Timing(short_ttft_s=short, noise_floor_s=floor, is_same=is_same)


def _same(probing: Probing, name: str, first: list[Reply], others: list[Reply], how: str) -> bool:
    wanted = first[0].content
    same = sum(reply.is_answer and reply.content == wanted for reply in others)
    found = bool(wanted) and same == len(others)
    probing.say(name, found, f"{same} of {len(others)} equal requests, {how}, were answered alike")
    return found


async def obeys(probing: Probing) -> bool:
    """Whether the model repeats what it is told to, or at least goes on copying what it was shown."""
    told = await _tries(probing, "obeys", "it was told to repeat a word, and did", _says)
    return told or await _tries(
        probing, "copies", "it was shown a line three times, and wrote it again", _copies
    )


async def _tries(
    probing: Probing, name: str, what: str, attempt: Callable[[Probing], Awaitable[bool]]
) -> bool:
    """Try up to three times, until two went well or cannot any more."""
    good = tries = 0
    while tries < TRIES and good < GOOD_FROM and good + TRIES - tries >= GOOD_FROM:
        good += await attempt(probing)
        tries += 1
    probing.say(name, good >= GOOD_FROM, f"{what}, {good} times of {tries}")
    return good >= GOOD_FROM


async def _says(probing: Probing) -> bool:
    word = words_of(1, probing.rng)
    ask = Ask(prompt=f"Repeat this word and nothing else: {word}", max_tokens=WORD_TOKENS)
    reply = await probing.ask(ask)
    return reply.is_answer and word in reply.content.lower()


async def _copies(probing: Probing) -> bool:
    text = words_of(COPIED_WORDS, probing.rng)
    endpoint = Endpoint.COMPLETIONS if probing.has_completions else Endpoint.CHAT
    prompt = prompts_for(Marker(text, "the probe", 0), endpoint).quote
    reply = await probing.ask(Ask(prompt=prompt, endpoint=endpoint, max_tokens=COPIED_TOKENS))
    return reply.is_answer and text in " ".join(reply.content.lower().split())
