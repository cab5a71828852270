"""How this model is made to say one word, and which words it says right when it is asked for them alone.

Rules it keeps:
- Forms are tried one request at a time, nothing else in flight: that is the serial control of every scenario
  that then asks at once. Only words that came back right are used.
- No two words begin with the same two letters, and none is in filler, needles or markers: a word in an answer
  says which request it belongs to, even when it is cut.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kvfence.check.asks import Ask, Endpoint
from kvfence.check.known import Known, Need
from kvfence.check.reply import Reply
from kvfence.check.scenario import Bench
from kvfence.report import Cost

_WORDS_TEXT = """
    walnut lagoon cobalt meteor saffron granite velvet tulips falcon bamboo cactus domino eclipse ginger
    hazard iguana jasmine kimono lobster magnet nutmeg octopus papaya quiver radish tundra umpire vortex
    wombat yogurt zigzag monsoon
"""
WORDS = tuple(_WORDS_TEXT.split())
PREFIX_LETTERS = 3
ANSWER_TOKENS = 8
PROMPT_TOKENS = 48  # of a short prompt, a chat template included
ASK_S = 5.0  # what a short request takes at most, for the plan
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Form:
    """A way to ask for a word. `template` holds {word}."""

    template: str
    endpoint: Endpoint | None = None

    def ask(self, word: str, *, mark: str, max_tokens: int = ANSWER_TOKENS) -> Ask:
        """The request."""
        return Ask(
            prompt=self.template.format(word=word),
            mark=mark,
            endpoint=self.endpoint,
            max_tokens=max_tokens,
        )


TOLD = Form("Repeat this word and nothing else: {word}")
# For models that follow no instruction: what was said a dozen times is said again.
ECHOED = Form(" ".join(["{word}"] * 12), Endpoint.COMPLETIONS)
# For those that tire of a bare word: a line is gone on with.
LINED = Form("The word is: {word}.\n" * 6 + "The word is:", Endpoint.COMPLETIONS)
FORMS = (TOLD, ECHOED, LINED)


@dataclass(frozen=True, slots=True)
class Sayer:
    """A form, the words that came back right in it, and what the serial control saw in all.

    `strays` are serial answers that held another word of the list: a model that makes words up, or a server
    that hands words on even then. `sent` are all words that were asked for, in any form.
    """

    form: Form
    words: tuple[str, ...]
    asked: int
    strays: int
    sent: frozenset[str]

    @property
    def right_share(self) -> float:
        """The share of words that came back right."""
        return len(self.words) / self.asked


def heard(reply: Reply) -> tuple[str, ...]:
    """The words of an answer's first choice, in order."""
    return tuple(_WORD.findall(reply.content.casefold()))


def heard_of(reply: Reply, words: Iterable[str]) -> set[str]:
    """Which of these words stand in an answer, whole or cut after the third letter."""
    said = [one for one in heard(reply) if len(one) >= PREFIX_LETTERS]
    return {word for word in words if any(word.startswith(one) or one.startswith(word) for one in said)}


def first_word_of(reply: Reply, words: Iterable[str]) -> str | None:
    """Which of these words an answer begins with, if any."""
    said = heard(reply)
    return next((word for word in words if said and _begins(said[0], word)), None)


def _begins(said: str, word: str) -> bool:
    # A first token may be two letters long.
    return len(said) >= 2 and (word.startswith(said) or said.startswith(word))


async def find_sayer(bench: Bench, need: int) -> Sayer | None:
    """The first form in which `need` words come back right, one after another; None if there is none.

    Asks for at most 2 · need words in each form, and for no more once too few can still come right.
    """
    sent: set[str] = set()
    for form in FORMS if Need.COMPLETIONS in bench.known.has else FORMS[:1]:
        words = bench.random.sample(WORDS, min(2 * need, len(WORDS)))
        right: list[str] = []
        strays = 0
        for asked, word in enumerate(words, 1):
            sent.add(word)
            reply = await bench.ask(bench.tenants[0], form.ask(word, mark="control"))
            found = heard_of(reply, WORDS)
            strays += bool(found - {word})
            if reply.is_answer and found == {word} and first_word_of(reply, WORDS) == word:
                right.append(word)
            if len(right) == need:
                return Sayer(form, tuple(right), asked, strays, frozenset(sent))
            if len(right) + len(words) - asked < need:
                break
    return None


def asks_cost(requests: int, *, completion_tokens: int = ANSWER_TOKENS, at_once: int = 1) -> Cost:
    """So many short requests, `at_once` of them side by side."""
    return Cost(
        requests=requests,
        prompt_tokens=requests * PROMPT_TOKENS,
        completion_tokens=requests * completion_tokens,
        seconds=requests / at_once * ASK_S,
    )


def sayer_cost(need: int) -> Cost:
    """What `find_sayer` uses at most."""
    return asks_cost(len(FORMS) * 2 * need)


def co_residence(known: Known) -> float | None:
    """The chance that two requests meet on one node: as measured, or 1 for one server on this machine."""
    if known.co_residence is not None:
        return known.co_residence
    return 1.0 if known.is_loopback and len(known.nodes) < 2 else None
