"""The long prompts of `boundary`: own needles in filler, and what of them an answer recalls.

Rules it keeps:
- Each prompt starts with words of its own, so that no prefix cache can have read it before.
- LIST holds five code words at 0, 25, 50, 75 and 100 % depth and asks for all of them; it tells a cut head
  from a cut tail. ECHO ends in one word said again and again, which models continue that follow no
  instruction; it tells only whether the end was read.
- A needle counts when it stands in the answer as a word. Words after the last one of an answer that was cut
  by its own `max_tokens` are unknown, not missing.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, unique
from itertools import pairwise

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.reply import Reply
from kvfence.check.scenarios.filler import filler, nonce

NEEDLES = 5
ANSWER_TOKENS = 8
ECHO_TOKENS = 5  # room for a word of two tokens twice, and one token before it
# Short words that most tokenizers hold whole; five of them fit an answer of eight tokens.
_CODES_TEXT = """
    oak fox gem ivy jar kite lamp mint nest owl pear quiz rope seal tent urn vine wolf yarn zinc
    bell coal drum fern goat hawk iron jade knot lime moss plum
"""
_CODES = tuple(_CODES_TEXT.split())
_NUMBERS = ("one", "two", "three", "four", "five")
_QUESTION = "What are the code words, one to five? Answer with the five words alone, in order."
_ECHOES = 12
_PAD = " so"
PADDING_MAX = 64
_WORD = re.compile(r"[a-z]+")


@unique
class Form(Enum):
    """How a prompt shows that it was read."""

    LIST = "five needles"
    ECHO = "the echo of its end"

    @property
    def answer_tokens(self) -> int:
        """How long an answer has to be for what it recalls to be seen."""
        return ANSWER_TOKENS if self is Form.LIST else ECHO_TOKENS


@dataclass(frozen=True, slots=True)
class LongPrompt:
    """`tokens` is the run's own count of `text`; `words` the needles, from the first to the last."""

    text: str
    form: Form
    words: tuple[str, ...]
    tokens: int

    def shorter_by(self, tokens: int) -> "LongPrompt":
        """The same without so many of its spare words, which stand last before its end."""
        at = self.text.rindex(_PAD * tokens)
        text = self.text[:at] + self.text[at + len(_PAD * tokens) :]
        return replace(self, text=text, tokens=self.tokens - tokens)

    def ask(
        self,
        *,
        mark: str,
        timeout_s: float,
        is_heavy: bool,
        max_tokens: int | None,
        expected_s: float | None = None,
    ) -> Ask:
        """The request. ECHO goes to the completions endpoint, for a chat template would end the echo."""
        return Ask(
            prompt=self.text,
            mark=mark,
            endpoint=Endpoint.COMPLETIONS if self.form is Form.ECHO else None,
            prompt_tokens=self.tokens,
            max_tokens=max_tokens,
            is_heavy=is_heavy,
            timeout_s=timeout_s,
            expected_s=expected_s,
            extra_headers={"Connection": "close"},
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """Which needles came back: True, False, or None for one that the answer had no room for."""

    seen: tuple[bool | None, ...]

    @property
    def count(self) -> int:
        """Needles that came back."""
        return sum(one is True for one in self.seen)

    @property
    def is_only_one_end(self) -> bool:
        """Whether the head came back without the tail, or the tail without the head."""
        head, tail = self.seen[0], self.seen[-1]
        return self.count > 0 and (head is False or tail is False) and head is not tail

    def __str__(self) -> str:
        marks = {True: "yes", False: "no", None: "unknown"}
        return ", ".join(marks[one] for one in self.seen)


def long_prompt(
    tokens: int, form: Form, rng: random.Random, count: Callable[[str], int], *, spare: int = 0
) -> LongPrompt:
    """A prompt of at most `tokens` tokens by the counter, and close to them.

    `spare` of them are words of one token each that may be left out again.
    """
    tokens -= spare
    if form is Form.ECHO:
        word = rng.choice(_CODES)
        head, tail = nonce(rng), "\n\n" + " ".join([word] * _ECHOES)
        body = filler(max(tokens - count(head + tail) - 2, 0), rng, count)
        text = _padded(f"{head} {body}", tail, tokens, count)
        return _with_spare(LongPrompt(text, form, (word,), count(text)), tail, spare)
    words = tuple(rng.sample(_CODES, NEEDLES))
    lines = [f"\nCode word {number} is {word}.\n" for number, word in zip(_NUMBERS, words, strict=True)]
    head = nonce(rng)
    fixed = count("".join((head, *lines, _QUESTION))) + NEEDLES + 2
    body = filler(max(tokens - fixed, 0), rng, count)
    text = _padded(f"{head}{_between(body, lines)}", _QUESTION, tokens, count)
    return _with_spare(LongPrompt(text, form, words, count(text)), _QUESTION, spare)


def _with_spare(prompt: LongPrompt, tail: str, spare: int) -> LongPrompt:
    text = f"{prompt.text.removesuffix(tail)}{_PAD * spare}{tail}"
    return replace(prompt, text=text, tokens=prompt.tokens + spare)


def recall_in(reply: Reply, prompt: LongPrompt) -> Recall:
    """Which of a prompt's needles are in its answer."""
    said = _WORD.findall(reply.content.casefold())
    if prompt.form is Form.ECHO:
        # Once could be chance or a quotation; twice is the echo.
        return Recall((said.count(prompt.words[0]) >= 2,))
    found = [word in said for word in prompt.words]
    is_full = reply.finish == "length"
    last = max((index for index, one in enumerate(found) if one), default=None)
    return Recall(
        tuple(
            None if is_full and not one and last is not None and index > last else one
            for index, one in enumerate(found)
        )
    )


def _padded(text: str, tail: str, tokens: int, count: Callable[[str], int]) -> str:
    """The text with small words before its tail, until it is as long as wanted or nearly so."""
    missing, padding = tokens - count(text + tail), 0
    while 0 < missing <= PADDING_MAX and padding <= PADDING_MAX:
        padding += missing
        missing = tokens - count(f"{text}{_PAD * padding}{tail}")
    if missing < 0 and padding:
        padding = max(padding + missing, 0)
    return f"{text}{_PAD * padding}{tail}"


def _between(body: str, lines: Sequence[str]) -> str:
    """The needles at even depths of the body, the first before it and the last behind it."""
    words = body.split(" ") if body else []
    parts = len(lines) - 1
    cuts = [len(words) * index // parts for index in range(parts + 1)]
    pieces = [" ".join(words[start:end]) for start, end in pairwise(cuts)]
    return "".join(line + piece for line, piece in zip(lines, (*pieces, ""), strict=True))
