"""What a writer remembers of leases that it has closed, for each decode incarnation.

Rules: what was said once is said again; below the floor everything is refused and nothing remembered;
when the memory is full the floor rises over its oldest entry, for refusing is always safe. A lease whose
write may still land is remembered as silent: Closed is never said for it, decode needs the cut. What is
forgotten is treated as silent too.
"""

from dataclasses import dataclass, field

from kvfence.protocol.words import Outcome


@dataclass(slots=True)
class ClosedMemory:
    """Closed leases of one decode incarnation, by sequence number. None means silent."""

    closed_max: int
    floor: int = 1
    outcomes: dict[int, Outcome | None] = field(default_factory=dict)

    def fork(self) -> "ClosedMemory":
        """A memory of its own, with the same leases."""
        return ClosedMemory(self.closed_max, self.floor, dict(self.outcomes))

    def is_closed(self, sequence: int) -> bool:
        """Tell whether the lease may not be written any more."""
        return sequence < self.floor or sequence in self.outcomes

    def outcome(self, sequence: int) -> Outcome | None:
        """Return what was said of a closed lease; None when nothing may be said."""
        return self.outcomes.get(sequence)

    def record(self, sequence: int, outcome: Outcome | None) -> None:
        """Remember what is about to be said (None: that nothing can be said)."""
        if sequence < self.floor:
            return
        self.outcomes[sequence] = outcome
        if len(self.outcomes) > self.closed_max:
            self.rise(min(self.outcomes) + 1)

    def silent(self) -> list[int]:
        """Return the sequences of which nothing may be said."""
        return [s for s, outcome in self.outcomes.items() if outcome is None]

    def rise(self, floor: int) -> None:
        """Raise the floor and forget what lies below it; it never sinks."""
        if floor > self.floor:
            self.floor = floor
            self.outcomes = {s: o for s, o in self.outcomes.items() if s >= floor}
