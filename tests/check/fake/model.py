"""A toy model: it reads words, whoever they belong to, and does what the last thing it reads asks for.

Rules it keeps:
- Its answer is a function of the words in the slots that were read, of seed and temperature, and, where a
  server rounds, of what ran beside. It knows nothing of requests and tenants.
- It obeys imperfectly: `obedience` is the share of answers that follow the prompt. The others refuse, add to
  it, or stop half-way.
- Whatever it finds after the last mark of an assistant's turn it takes for its own words, and goes on with
  them. A text that ends as an earlier line of it did is continued as that line was. Without anything to obey
  or to continue it makes words up, and recites some of what it has read.
"""

import random
from dataclasses import dataclass
from hashlib import blake2b

from tests.check.fake.reading import continuation, wish_of
from tests.check.fake.vocabulary import ASSISTANT, PAD, pieces_of

TALK = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "or",
    "had",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "all",
    "her",
    "she",
    "there",
    "would",
    "their",
    "we",
    "him",
    "been",
    "has",
    "when",
    "who",
    "will",
    "no",
    "more",
    "if",
    "out",
    "so",
    "up",
    "said",
    "what",
    "its",
    "about",
    "than",
    "into",
    "them",
    "can",
    "only",
    "other",
    "time",
    "new",
    "some",
    "could",
    "these",
    "two",
    "may",
    "first",
    "then",
    "do",
]
FREE_WORDS = (24, 160)
ECHO_PIECES = 16
SHORT_PIECES = 64  # with little to read, what was read is all there is to say
RECITED_PIECES = 24
SORRY = "I'm sorry, but I can't help with that."


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to its end, and the digest of all that it came from."""

    words: list[str]
    digest: bytes


class ToyModel:
    """The model."""

    def __init__(self, *, seed=0, obedience=1.0, rounding=0.0):
        self._seed, self._obedience, self._rounding = seed, obedience, rounding
        self._last = (None, None)

    def answer(self, words, *, job, salt=0):
        """The answer to what these slots say. An unwritten slot says nothing."""
        text = "".join(word for word in words if word and word != PAD)
        drawn = (job.seed, job.temperature) if job.temperature else 0
        mixed = f"{self._seed} {job.model} {drawn}\x00{text}"
        digest = blake2b(mixed.encode(), digest_size=16).digest()
        if self._last[0] == (digest, salt):
            return self._last[1]
        answer = Answer(self._say(text, random.Random(digest), salt), digest)
        self._last = ((digest, salt), answer)
        return answer

    def top(self, answer, position, word):
        """The likeliest words of one place, with log-probabilities."""
        if answer is None:
            return ((word, -0.01),)
        rng = random.Random(answer.digest + position.to_bytes(4, "big"))
        best = rng.uniform(-0.4, -0.01)
        others = rng.sample(TALK, 4)
        return ((word, best), *((f" {other}", best - 1.0 - index) for index, other in enumerate(others)))

    def go_on(self, answer, made, said):
        """The answer from here on, when these words stand where `made` was said."""
        mixed = answer.digest + "".join(word or "" for word in said).encode()
        digest = blake2b(mixed, digest_size=16).digest()
        return Answer(
            [*made, *self._free("".join(word or "" for word in said), random.Random(digest), 0)], digest
        )

    def slip(self, number, position):
        """A word that a defect of a batch puts in the place of the right one."""
        return " " + random.Random(f"{number} {position}").choice(TALK)

    def _say(self, text, rng, salt):
        before, mark, own = text.rpartition(ASSISTANT)
        question = before if mark else text
        if mark and own.strip():
            return pieces_of(own)[-ECHO_PIECES:] + (continuation(text) or self._free(text, rng, salt))
        copied, wish = continuation(question), wish_of(question)
        obeys = rng.random() < self._obedience
        if copied and (wish is None or question.rstrip().endswith(":")):
            return copied if obeys else self._free(text, rng, salt)
        if wish is None:
            return self._free(text, rng, salt)
        return pieces_of(wish) if obeys else self._disobey(wish, text, rng, salt)

    def _disobey(self, wish, text, rng, salt):
        way = rng.randrange(4)
        if way == 0:
            return pieces_of(SORRY)
        if way == 1:
            return pieces_of("Sure! " + wish)
        if way == 2:
            return pieces_of(wish)[: max(1, len(pieces_of(wish)) // 2)]
        return self._free(text, rng, salt)

    def _free(self, text, rng, salt):
        """Words of its own, and now and then some that it has read."""
        beside = random.Random(salt) if salt and self._rounding else None
        read = pieces_of(text[-20_000:]) if text else []
        made = []
        for _ in range(rng.randint(*FREE_WORDS)):
            word = " " + rng.choice(TALK)
            if read and rng.random() < (0.08 if len(read) > SHORT_PIECES else 0.3):
                at = rng.randrange(len(read))
                made += [piece for piece in read[at : at + RECITED_PIECES] if "<|" not in piece]
            elif beside is not None and beside.random() < self._rounding:
                word = " " + beside.choice(TALK)
            made.append(word)
        return made
