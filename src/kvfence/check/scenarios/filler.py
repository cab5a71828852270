"""Text of a wanted length that says nothing: plain sentences, never the same twice, made from a seed.

Rules it keeps: no text starts like another, so that no prefix cache knows it; it is never longer than wanted
by the counter it was given; none of its words is used for needles, answers or markers.
"""

import random
from collections.abc import Callable

_THINGS_TEXT = """
    river garden window paper morning market bridge mountain kitchen letter summer village station forest
    harbor engine button carpet doctor farmer singer teacher flower basket bottle corner dinner hammer
    island jacket ladder mirror needle orange pencil pillow rabbit saddle stable ticket tunnel turtle
    valley violin wagon winter
"""
_THINGS = tuple(_THINGS_TEXT.split())
_DID = ("stood", "lay", "waited", "slept", "moved", "turned", "rested", "sat")
_WHERE = ("near", "behind", "beside", "before", "under", "above")
_SAMPLE_WORDS = 400
_SENTENCE_WORDS = 6
_SENTENCES_MAX = 256
_CORRECTIONS_MAX = 6


def nonce(rng: random.Random) -> str:
    """A first line that no other prompt has."""
    return f"Note {rng.getrandbits(48):012x}."


def sentence(rng: random.Random) -> str:
    """One plain sentence."""
    one, other = rng.sample(_THINGS, 2)
    return f"The {one} {rng.choice(_DID)} {rng.choice(_WHERE)} the {other}."


def filler(tokens: int, rng: random.Random, count: Callable[[str], int]) -> str:
    """A text of at most `tokens` tokens, and within a word or two of them where the counter is exact."""
    words = _words(_SAMPLE_WORDS, rng)
    per_word = max(count(" ".join(words)) / len(words), 0.1)
    want = int(tokens / per_word)
    for _ in range(_CORRECTIONS_MAX):
        words = (words + _words(max(want - len(words), 0), rng))[: max(want, 0)]
        over = count(" ".join(words)) - tokens if words else 0
        if over <= 0 and -over <= max(2, tokens // 2_000):
            break
        want -= max(1, round(over / per_word)) if over > 0 else min(-1, round(over / per_word))
    while words and count(" ".join(words)) > tokens:
        words = words[: -max(1, len(words) // 200)]
    return " ".join(words)


def _words(count: int, rng: random.Random) -> list[str]:
    """So many words, or a few more. Long texts repeat sentences, never their order."""
    sentences = [sentence(rng).split() for _ in range(min(count // _SENTENCE_WORDS + 1, _SENTENCES_MAX))]
    drawn = rng.choices(sentences, k=count // _SENTENCE_WORDS + 1) if count else []
    return [word for one in drawn for word in one]
