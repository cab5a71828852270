"""Markers: words that only one request was ever given, and the search for them in everybody else's answers.

Rules it keeps:
- A marker has at least 64 random bits, spelled in words that a model repeats easily.
- A piece of one counts when at least 40 bits of it are left after a union bound over every comparison that
  the run has made: the chance that a run raises a false alarm stays below 2 to the power of -40.
- It is found when it is cut, re-cased, spaced, or split over chunks.
"""

from dataclasses import dataclass

BITS_MIN = 64
BITS_TO_CLAIM = 40


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
