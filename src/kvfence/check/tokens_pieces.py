"""How many tokens a text has, from the kinds of pieces in it and what each kind weighs on one server.

Rules it keeps:
- A text is told apart into words of two lists, and a rest whose size is a rough measure of its own.
- What a piece of each kind weighs is measured (`tokens`), not supposed; here are only the pieces.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from kvfence.check.tokens_words import MORE_WORDS, WORDS

_PIECE = re.compile(r"([A-Za-z]+)|(\d+)|([.,:;?!\n])|((?:\s(?=\d|\s))|[^\w\s]|_)|([^\x00-\x7f])|\s")
_WORDS = frozenset(WORDS)
_MORE_WORDS = frozenset(MORE_WORDS)
# A word on no list is as many pieces as it has starts of five letters.
_LETTERS_OF_A_PIECE = 5
_BYTES_OF_A_PIECE = 3


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a text is made of."""

    words: int = 0
    more_words: int = 0
    rest: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Tokens of a piece of each kind, and what a request has around its prompt (template, first token)."""

    word: float = 1.0
    more_word: float = 1.0
    rest: float = 1.0
    overhead: float = 0.0


def pieces_of(text: str) -> Pieces:
    """Return what a text is made of."""
    words = more_words = rest = 0
    for found in _PIECE.finditer(text):
        letters, digits, common, sign, other = found.groups()
        if letters is not None:
            # A capital changes the token, not, for words as common as these, that it is one.
            spelt = letters.lower() if letters[1:].islower() or len(letters) == 1 else letters
            if spelt in _WORDS:
                words += 1
            elif spelt in _MORE_WORDS:
                more_words += 1
            else:
                rest += 1 + (len(letters) - 1) // _LETTERS_OF_A_PIECE
        elif digits is not None:
            rest += len(digits)
        elif other is not None:
            rest += -(-len(other.encode()) // _BYTES_OF_A_PIECE)
        elif common is not None:
            more_words += 1  # as sure to be one token as a common word
        elif sign is not None:
            rest += 1
    return Pieces(words, more_words, rest)


def weigh(text: str, weights: Weights) -> float:
    """Return the tokens of a request whose prompt is this text."""
    found = pieces_of(text)
    return (
        weights.overhead
        + weights.word * found.words
        + weights.more_word * found.more_words
        + weights.rest * found.rest
    )


def counting(weights: Weights) -> Callable[[str], int]:
    """Return a counter of texts by these weights."""
    return lambda text: round(weigh(text, weights))
