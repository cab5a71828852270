"""Markers: words that only one request was ever given, and the search for them in everybody else's answers.

Rules it keeps:
- A marker has at least 64 random bits, spelled in words that a model repeats easily. Each owner's words come
  from one alphabet, so that a piece names its owner.
- A piece of one counts when at least 40 bits of it are left after a union bound over every comparison that
  the run has made: the chance that a run raises a false alarm stays below 2 to the power of -40. The bound is
  over the draw of the marker, so it holds for whatever the server says, unless it was given the marker.
- It is found when it is cut, re-cased, spaced, or split over chunks.
- A word of a marker that the request may bring back counts for nothing.

How it looks: a text is reduced to its letters, and these to one sequence of words for each alphabet. A marker
is laid along the sequence at every offset; at each, the words that agree are counted. So words in between
that are nobody's cost nothing, and a wrong word costs itself. A small model drops a word, or makes it
another form of the same: so the offset may change once by one, at any place, which costs some bits. Where a
prompt says its marker line after line, a piece may begin in one line and end in the next, at some cost too.

What it does not do: it keeps no text, and it does not know whose request a text answers.
"""

import math
import random
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvfence.check.markers_words import ALPHABETS, WORD_LETTERS
from kvfence.protocol.errors import invariant

BITS_MIN = 64
BITS_TO_CLAIM = 40
WORDS = 16  # in a marker
# A false alarm may come from any of the shapes that agreeing words can have. Those in r runs may spend one
# 2-to-the-r-th of the chance, and more words than are needed add less than a tenth of a bit to it.
_MORE_WORDS_BITS = 0.1
# A marker is laid straight (half of the chance), or bent once by one, at one of 15 places, in two directions,
# or wrapped around from its end to its beginning at one of 15 places (a quarter each).
_STRAIGHT_BITS = 1.0
_BENT_BITS = 2 + math.log2(2 * (WORDS - 1))
_WRAPPED_BITS = 2 + math.log2(WORDS - 1)
# The number of comparisons is doubled at most 64 times; each doubling may spend one 64th of the chance.
LOOKS_BITS = 6
# The longest run for which `is_shown` promises that the scan would have claimed what it sees.
COMPARISONS_FORESEEN = 2**30

_NOT_LETTERS = re.compile("[^a-z]+")
_ALPHABET_OF = {word: number for number, words in enumerate(ALPHABETS) for word in words}
# What k given words at k given places are worth: words of a marker are drawn without putting them back.
_MATCH_BITS = tuple(
    sum(math.log2(len(ALPHABETS[0]) - drawn) for drawn in range(words)) for words in range(WORDS + 1)
)
# Fewer can never reach the claim, whatever was compared.
_WORDS_TO_LOOK_AT = 3


@dataclass(frozen=True, slots=True)
class Marker:
    """`text` is what stands in the prompt; `owner` whose it is; `bits` the randomness in it."""

    text: str
    owner: str
    bits: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A marker, or enough of it, in a text. `bits` is what is left after the bound."""

    marker: Marker
    place: str
    bits: float
    share: float  # of the marker's text that was met


class MarkerBook:
    """All markers of a run, and the count of what was compared with them.

    `bits_to_claim` is lower in tests alone: nobody can wait for an event of 2 to the power of -40.
    """

    def __init__(self, *, bits_to_claim: float = BITS_TO_CLAIM) -> None:
        self._bits_to_claim = bits_to_claim
        self._live: dict[int, Marker] = {}
        self._numbers: dict[Marker, int] = {}
        self._minted = 0
        self._alphabets: dict[str, int] = {}
        # word → (marker's number, place in it)
        self._places: dict[str, list[tuple[int, int]]] = {}
        self.comparisons = 0

    @property
    def live(self) -> tuple[Marker, ...]:
        """What is looked for, oldest first."""
        return tuple(self._live.values())

    def mint(self, owner: str, source: random.Random) -> Marker:
        """Draw a marker for `owner` and look for it from now on.

        Owners take the alphabets in turn, by when they were first heard of; beyond six they share them.
        """
        alphabet = ALPHABETS[self._alphabets.setdefault(owner, len(self._alphabets) % len(ALPHABETS))]
        words = source.sample(alphabet, WORDS)
        marker = Marker(text=" ".join(words), owner=owner, bits=int(_MATCH_BITS[WORDS]))
        invariant(marker not in self._numbers, "no marker is drawn twice")
        self._minted += 1
        self._live[self._minted] = marker
        self._numbers[marker] = self._minted
        for place, word in enumerate(words):
            self._places.setdefault(word, []).append((self._minted, place))
        return marker

    def retire(self, *markers: Marker) -> None:
        """Look for these no longer. A marker that is not live is left as it is."""
        for marker in markers:
            number = self._numbers.pop(marker, None)
            if number is None:
                continue
            del self._live[number]
            for place, word in enumerate(marker.text.split()):
                self._places[word].remove((number, place))

    def scan(self, text: str, place: str, own: Collection[Marker] = ()) -> tuple[Hit, ...]:
        """Return the foreign markers in a text, the surest first.

        `text` is all of one place's text of one reply, chunks and tokens joined. `own` are the markers that
        its request was given.
        """
        letters = letters_of(text)
        own_numbers = {self._numbers[marker] for marker in own if marker in self._numbers}
        foreign = len(self._live) - len(own_numbers)
        if foreign == 0:
            return ()
        self.comparisons += _offsets(letters) * foreign
        own_words = {word for marker in own for word in marker.text.split()}
        best: dict[int, tuple[float, int]] = {}
        for number, mask, bits in _agreements(letters, self._places, own_words):
            if number not in own_numbers:
                claim = (bits - math.log2(self.comparisons), mask.bit_count())
                best[number] = max(best.get(number, claim), claim)
        hits = [
            Hit(marker=self._live[number], place=place, bits=bits, share=words / WORDS)
            for number, (bits, words) in best.items()
            if bits >= self._bits_to_claim
        ]
        return tuple(sorted(hits, key=lambda hit: -hit.bits))


def letters_of(text: str) -> str:
    """All that is left of a text when case, accents, spaces, digits and marks are gone."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    return _NOT_LETTERS.sub("", text.casefold())


def sequences_of(letters: str) -> tuple[list[str], ...]:
    """For each alphabet its words in a string of letters, in order, none overlapping another."""
    sequences: tuple[list[str], ...] = tuple([] for _ in ALPHABETS)
    free_from = [0] * len(ALPHABETS)
    for start in range(len(letters) - WORD_LETTERS + 1):
        alphabet = _ALPHABET_OF.get(letters[start : start + WORD_LETTERS])
        if alphabet is not None and start >= free_from[alphabet]:
            sequences[alphabet].append(letters[start : start + WORD_LETTERS])
            free_from[alphabet] = start + WORD_LETTERS
    return sequences


def is_shown(marker: Marker, text: str) -> bool:
    """Whether a text shows so much of a marker that a scan would claim it, were the marker foreign.

    This is what a positive control counts: its share among requests that should quote their own marker is the
    detector's sensitivity. It supposes the largest number of comparisons that a run is foreseen to make.
    """
    places = {word: [(0, place)] for place, word in enumerate(marker.text.split())}
    wanted = BITS_TO_CLAIM + math.log2(COMPARISONS_FORESEEN)
    return any(bits >= wanted for _, _, bits in _agreements(letters_of(text), places, ()))


def _agreements(
    letters: str, places: Mapping[str, Sequence[tuple[int, int]]], own_words: Collection[str]
) -> Iterator[tuple[int, int, float]]:
    """(marker's number, places that agree, their bits before the bound) wherever some words agree.

    `places` has, for each word, where it stands: (marker's number, place in it). Places that agree are the
    set bits of an integer.
    """
    for sequence in sequences_of(letters):
        masks: dict[tuple[int, int], int] = {}
        for index, word in enumerate(sequence):
            if word in own_words:
                continue
            for number, place in places.get(word, ()):
                key = (number, index - place)
                masks[key] = masks.get(key, 0) | 1 << place
        for (number, offset), mask in masks.items():
            if mask.bit_count() >= _WORDS_TO_LOOK_AT:
                yield number, mask, _bits_of(mask) - _STRAIGHT_BITS
            for beside, combined, price in _WAYS:
                tail = masks.get((number, offset + beside), 0)
                if tail and mask.bit_count() + tail.bit_count() > _WORDS_TO_LOOK_AT:
                    both = combined(mask, tail)
                    yield number, both, _bits_of(both) - price


def _bent(head: int, tail: int) -> int:
    """The places that agree when the offset changes at the best place: those of one, then of the other."""
    return max(((head & low) | (tail & ~low) for low in _BELOW), key=_bits_of)


def _wrapped(head: int, tail: int) -> int:
    """The places that agree, counted from the best place on, around the marker's end to its beginning."""
    turned = ((head >> place) | (tail & low) << (WORDS - place) for place, low in enumerate(_BELOW, start=1))
    return max(turned, key=_bits_of)


def _offsets(letters: str) -> int:
    """How often one marker is laid along a text, at most."""
    return len(letters) // WORD_LETTERS + WORDS


def _bits_of(mask: int) -> float:
    """What the agreeing places of a marker are worth, whatever their shape, before the union bound.

    Of the ways to place k words in r runs among 16, of which there are C(k-1, r-1) · C(17-k, r), any would
    have been taken; so each costs.
    """
    words = mask.bit_count()
    if words == 0:
        return 0.0
    runs = (mask & ~(mask << 1)).bit_count()
    shapes = math.comb(words - 1, runs - 1) * math.comb(WORDS + 1 - words, runs)
    return _MATCH_BITS[words] - math.log2(shapes) - runs - _MORE_WORDS_BITS - LOOKS_BITS


_BELOW = tuple((1 << place) - 1 for place in range(1, WORDS))
# (how far the other offset is, what is made of the two, its price)
_WAYS = ((-1, _bent, _BENT_BITS), (1, _bent, _BENT_BITS), (WORDS, _wrapped, _WRAPPED_BITS))
