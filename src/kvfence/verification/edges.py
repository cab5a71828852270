"""The free edges of an exploration, as one process keeps them while it searches.

Rules: an edge is free when it costs no weather. It is kept as the key of the state to which it leads, since
that state may be another process's, and as the number of its class (`fairness.class_of`). States are
numbered as the worker numbers them. What a worker filed before the work was divided is its parent's to tell.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kvfence.verification.fairness import Class, class_of
from kvfence.verification.layout import State
from kvfence.verification.moves import Move


@dataclass(slots=True)
class Share:
    """States and free edges of one process. `first` is the number of its first state.

    Of the n-th state that was expanded, `sources` has the number and `counts` how many edges leave it; the
    edges stand one after the other in `targets` and `classes`.
    """

    first: int = 0
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    homes: bytearray = field(default_factory=bytearray)
    sources: "array[int]" = field(default_factory=lambda: array("I"))
    counts: "array[int]" = field(default_factory=lambda: array("I"))
    targets: "array[int]" = field(default_factory=lambda: array("Q"))
    classes: "array[int]" = field(default_factory=lambda: array("H"))
    names: list[Class] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """What it takes."""
        arrays = (self.keys, self.sources, self.counts, self.targets, self.classes)
        return len(self.homes) + sum(one.itemsize * len(one) for one in arrays)


class Edges:
    """Keeps a share."""

    def __init__(self, is_home: Callable[[State], bool]) -> None:
        self._is_home = is_home
        self.share = Share()
        self._numbers: dict[Class, int] = {}
        self._known: dict[Any, int] = {}  # by the root of a move: there is one for each happening

    def divide(self) -> None:
        """Begin a share that holds what follows from now on."""
        self.share = Share(first=self.share.first + len(self.share.keys), names=self.share.names)

    def file(self, key: int, state: State) -> None:
        """Take note of a new state."""
        self.share.keys.append(key)
        self.share.homes.append(self._is_home(state))

    def leave(self, source: int) -> None:
        """What comes next leaves this state."""
        self.share.sources.append(source)
        self.share.counts.append(0)

    def add(self, key: int, move: Move) -> None:
        """Take note of a free edge of the state that is being left."""
        share = self.share
        share.counts[-1] += 1
        share.targets.append(key)
        number = self._known.get(move.root)
        if number is None:
            number = self._known[move.root] = self._number(class_of(move.happening))
        share.classes.append(number)

    def _number(self, name: Class) -> int:
        known = self._numbers.get(name)
        if known is None:
            known = self._numbers[name] = len(self.share.names)
            self.share.names.append(name)
        return known
