"""What the three cores have in common: dispatch, the trail of rows taken, counts, steps in flight.

Rules: `step` takes one event and returns the commands that follow, in order; nothing else goes in or
out. Records are plain and hold no functions, so that a core can be copied and compared. An event that is
not for this role, or comes from an incarnation that does not speak (law 10), is counted and ignored.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from kvfence.protocol.decisions import Decisions
from kvfence.protocol.errors import invariant
from kvfence.protocol.events import StepLaunched, StepRetired
from kvfence.protocol.peers import PeerBook
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import LeaseId, Peer

if TYPE_CHECKING:
    from kvfence.protocol.tables import Transition


class Machine:
    """Base of the cores. A core names a handler method for each event that is meant for it.

    `trail` holds the rows taken by the last step, for logs, coverage and trace conformance; `counts`
    grows for ever and is meant for metrics.
    """

    HANDLERS: ClassVar[Mapping[type, str]] = {}

    def __init__(self, me: Peer, decisions: Decisions, peers_max: int) -> None:
        self.me = me
        self.decisions = decisions
        self.peers = PeerBook(peers_max)
        self.trail: list[Transition] = []
        self.counts: dict[str, int] = {}
        self.is_draining = False
        self._out: list[Command] = []

    def step(self, event: Event) -> list[Command]:
        """Take one fact, return the commands that follow from it, to be carried out in order."""
        self._out = []
        self.trail = []
        name = self.HANDLERS.get(type(event))
        if name is None:
            self._count("misdirected")
        else:
            handler: Callable[[Any], None] = getattr(self, name)
            handler(event)
            self._settle()
        out, self._out = self._out, []
        return out

    def _settle(self) -> None:
        """Draw what follows by itself from the facts of this step (quiet, room, grants)."""
        raise NotImplementedError

    def _say(self, command: Command) -> None:
        self._out.append(command)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def count_states(states: type[Enum], records: Iterable[Any]) -> dict[str, int]:
    """Count records by the value of their state; every state of the type has an entry."""
    counts = {state.value: 0 for state in states}
    for record in records:
        counts[record.state.value] += 1
    return counts


class StepBook:
    """Forward passes that were launched and have not retired, with the leases they touch."""

    __slots__ = ("_steps", "_steps_max")

    def __init__(self, steps_max: int) -> None:
        self._steps: dict[int, tuple[LeaseId, ...]] = {}
        self._steps_max = steps_max

    def fork(self) -> "StepBook":
        """A book of its own, with the same steps."""
        twin = StepBook(self._steps_max)
        twin._steps = dict(self._steps)
        return twin

    def launch(self, event: StepLaunched) -> Iterable[LeaseId]:
        """Take note of a launch; return its leases. A number in use, or one too many, is our own fault."""
        invariant(event.step not in self._steps, f"step {event.step} is launched twice")
        invariant(len(self._steps) < self._steps_max, f"more than {self._steps_max} steps in flight")
        self._steps[event.step] = tuple(dict.fromkeys(event.leases))
        return self._steps[event.step]

    def retire(self, event: StepRetired) -> Iterable[LeaseId]:
        """Take note of a retirement; return the step's leases (none for an unknown step)."""
        return self._steps.pop(event.step, ())

    def of(self, lease: LeaseId) -> frozenset[int]:
        """Return the numbers of the steps in flight that touch the lease."""
        return frozenset(step for step, leases in self._steps.items() if lease in leases)

    def __len__(self) -> int:
        return len(self._steps)
