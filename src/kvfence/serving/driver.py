"""Drive a protocol core: feed events in order, carry its commands out, keep its timers.

The core is pure; this is the one place where its commands meet the world. Events that arise while a
command is carried out wait their turn, so that a core is never entered twice. An exception that
escapes ends the process: a node that does not know its own state must not serve.
"""

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from kvfence.protocol.commands import SetTimer
from kvfence.protocol.events import Expired
from kvfence.protocol.vocabulary import Command, Event

# Told of each step before its commands are carried out, so that nothing is heard of before it is known.
Observer = Callable[[Event, Sequence[Command]], None]


class Core(Protocol):
    """What every core is: an event goes in, commands come out."""

    def step(self, event: Event) -> Sequence[Command]:
        """One event."""
        ...


class CoreDriver:
    """Feeds one core. `carry_out` gets every command but SetTimer, in order."""

    def __init__(
        self, core: Core, carry_out: Callable[[Command], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._core, self._carry_out, self._clock = core, carry_out, clock
        self.observer: Observer | None = None
        self._events: deque[Event] = deque()
        self._feeding = False
        self._timers: list[tuple[float, int, Expired]] = []
        self._order = itertools.count()

    def feed(self, event: Event) -> None:
        """Step the core with the event, and with whatever arises from it."""
        self._events.append(event)
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._events:
                event = self._events.popleft()
                said = self._core.step(event)
                if self.observer is not None:
                    self.observer(event, said)
                for command in said:
                    if isinstance(command, SetTimer):
                        self._set(command)
                    else:
                        self._carry_out(command)
        finally:
            self._feeding = False

    def fire_due(self) -> None:
        """Feed every timer whose time has come."""
        now = self._clock()
        while self._timers and self._timers[0][0] <= now:
            self.feed(heapq.heappop(self._timers)[2])

    def next_due_seconds(self) -> float | None:
        """Seconds until the next timer; None when none is set."""
        if not self._timers:
            return None
        return max(0.0, self._timers[0][0] - self._clock())

    def _set(self, command: SetTimer) -> None:
        due = self._clock() + command.after_ms / 1000
        heapq.heappush(self._timers, (due, next(self._order), Expired(command.timer, command.generation)))
