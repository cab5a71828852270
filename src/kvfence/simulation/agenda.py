"""Virtual time: what is due, in the order of time, then of being added. It only ever moves forward."""

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Agenda(Generic[Item]):
    """A heap of (time in microseconds, number, item)."""

    def __init__(self) -> None:
        self.now_us = 0
        self._heap: list[tuple[int, int, Item]] = []
        self._next = 1

    def __len__(self) -> int:
        """How much is due."""
        return len(self._heap)

    def add(self, after_us: int, item: Item) -> int:
        """Add an item; return its number, by which it is known when it comes."""
        number = self._next
        self._next += 1
        heappush(self._heap, (self.now_us + max(0, after_us), number, item))
        return number

    def pop(self) -> tuple[int, Item]:
        """Move time to the next item; return its number and the item."""
        self.now_us, number, item = heappop(self._heap)
        return number, item
