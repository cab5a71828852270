"""What tenant A leaves behind, and how it is recognised in somebody else's answer.

Rules it keeps: a leak is never concluded from text that differs. It is concluded from words of A's secret
that stand nowhere in what B sent, and that no answer to B holds by chance: each of them is rare by
itself, and one alone already counts. So B's own prompt cannot set the detector off.

It compares words, whatever their case and the signs around them; a word that was cut is not found.
"""

import re
from dataclasses import dataclass

from kvfence.protocol.errors import OperatorError

DEFAULT_WORDS = ("zanzibar", "quokka", "marmalade")
WORDS_MAX = 8
LETTERS_MIN = 5  # shorter words stand in too many answers

_WORD = re.compile(r"[^\W\d_]+")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text, in lower case, in order."""
    return tuple(word.casefold() for word in _WORD.findall(text))


@dataclass(frozen=True, slots=True)
class Secret:
    """Tenant A's access code: a few rare words."""

    words: tuple[str, ...] = DEFAULT_WORDS

    def __post_init__(self) -> None:
        """Raise OperatorError for words by which nothing could be recognised."""
        short = [word for word in self.words if len(word) < LETTERS_MIN or words_of(word) != (word,)]
        if not 1 <= len(self.words) <= WORDS_MAX or short:
            raise OperatorError(
                f"the secret {' '.join(self.words)!r} could not be told from an ordinary answer: give 1 to "
                f"{WORDS_MAX} lower-case words of at least {LETTERS_MIN} letters, such as --secret "
                f'"{" ".join(DEFAULT_WORDS)}"'
            )

    @classmethod
    def of(cls, text: str) -> "Secret":
        """Read what was given on the command line."""
        return cls(tuple(text.casefold().split()))

    @property
    def phrase(self) -> str:
        """The words as A writes them."""
        return " ".join(self.words)

    def found_in(self, answer: str, *, prompt: str) -> tuple[str, ...]:
        """Return the words of the secret that are in the answer and not in the prompt it was given to."""
        told = set(words_of(prompt))
        said = set(words_of(answer))
        return tuple(word for word in self.words if word in said and word not in told)
