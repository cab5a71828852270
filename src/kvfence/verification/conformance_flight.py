"""Forward passes in flight, as a node says that it launched and retired them."""

from collections.abc import Iterable

from kvfence.protocol.events import StepLaunched, StepRetired
from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import LeaseId
from kvfence.verification.conformance_rows import Found
from kvfence.verification.conformance_steps import ViolationKind


class Flight:
    """Which passes touch which leases now."""

    def __init__(self) -> None:
        self._passes: dict[int, frozenset[LeaseId]] = {}

    def take(self, event: Event) -> Found:
        """Take note of a launch or a retirement; other events are not looked at."""
        if isinstance(event, StepLaunched):
            if event.step in self._passes:
                yield ViolationKind.STEP, f"pass {event.step} is launched twice"
            self._passes[event.step] = frozenset(event.leases)
        elif isinstance(event, StepRetired) and self._passes.pop(event.step, None) is None:
            yield ViolationKind.STEP, f"pass {event.step} is retired and was not launched"

    def of(self, lease: LeaseId) -> frozenset[int]:
        """Return the passes in flight that touch the lease."""
        return frozenset(number for number, leases in self._passes.items() if lease in leases)

    def among(self, passes: Iterable[int]) -> frozenset[int]:
        """Return those of these passes that are still in flight."""
        return frozenset(passes) & self._passes.keys()
