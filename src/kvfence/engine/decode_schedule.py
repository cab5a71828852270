"""Which rows the next decode step computes.

The policy:
- At most `max_batch` rows are seated; the others wait, first in, first out. A seated row keeps its seat
  from step to step, so that what the executor keeps for a batch stays valid while nobody comes or goes.
- A row that ends, or is paused because it waits for a page, gives its seat to the first that waits. A
  resumed row waits at the front: it had its turn and lost it through no fault of its own.
- While rows wait, a seated row that had `TURN_STEPS` steps yields its seat to the first that waits and goes
  to the end. One seat changes hands in a step at most, so that the batch never turns over at once. With w
  rows waiting, the last of them is seated after at most TURN_STEPS + w steps.

It is pure (no tensor, no clock), knows nothing of tokens or pages, and never preempts: who must leave
when the pool is full is the protocol's decision.
"""

from collections import deque

from kvfence.protocol.errors import invariant
from kvfence.protocol.words import LeaseId

# Long enough that changing seats costs nothing, short enough that no client waits for seconds.
TURN_STEPS = 32
ROWS_MAX = 65_536

__all__ = ["ROWS_MAX", "TURN_STEPS", "DecodeSchedule"]


class DecodeSchedule:
    """The running rows of one decode node."""

    def __init__(self, max_batch: int) -> None:
        """Seat at most `max_batch` rows in a step."""
        invariant(max_batch > 0, "a batch has room for one row")
        self._max_batch = max_batch
        self._seated: dict[LeaseId, int] = {}  # in seat order; the steps of the present turn
        self._waiting: deque[LeaseId] = deque()
        self._paused: set[LeaseId] = set()

    def __len__(self) -> int:
        """Rows that were added and not removed."""
        return len(self._seated) + len(self._waiting) + len(self._paused)

    def __contains__(self, lease: LeaseId) -> bool:
        """Whether the row was added and not removed."""
        return lease in self._seated or lease in self._paused or lease in self._waiting

    @property
    def waiting_rows(self) -> int:
        """Rows that could be computed and have no seat."""
        return max(0, len(self._seated) + len(self._waiting) - self._max_batch)

    @property
    def paused_rows(self) -> int:
        """Rows that wait for a page."""
        return len(self._paused)

    def add(self, lease: LeaseId) -> None:
        """Let a row wait for a seat."""
        invariant(lease not in self, f"{lease} is scheduled once")
        invariant(len(self) < ROWS_MAX, "admission bounds the rows of a node")
        self._waiting.append(lease)

    def remove(self, lease: LeaseId) -> None:
        """Forget a row. One that is not there is no fault: it may have ended in the step before."""
        self._seated.pop(lease, None)
        self._paused.discard(lease)
        if lease in self._waiting:
            self._waiting.remove(lease)

    def pause(self, lease: LeaseId) -> None:
        """Leave a row out until it is resumed. Pausing twice, or an unknown row, changes nothing."""
        if lease in self:
            self.remove(lease)
            self._paused.add(lease)

    def resume(self, lease: LeaseId) -> None:
        """Let a paused row wait at the front. A row that is not paused stays where it is."""
        if lease in self._paused:
            self._paused.remove(lease)
            self._waiting.appendleft(lease)

    def rows_for_step(self) -> tuple[LeaseId, ...]:
        """Return the rows of the next step in seat order, and count the step as theirs."""
        if self._waiting and len(self._seated) == self._max_batch:
            self._yield_one_seat()
        while self._waiting and len(self._seated) < self._max_batch:
            self._seated[self._waiting.popleft()] = 0
        for lease in self._seated:
            self._seated[lease] += 1
        return tuple(self._seated)

    def _yield_one_seat(self) -> None:
        longest = max(self._seated, key=self._seated.__getitem__)
        if self._seated[longest] >= TURN_STEPS:
            del self._seated[longest]
            self._waiting.append(longest)
