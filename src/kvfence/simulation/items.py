"""What stands in the agenda of a run."""

from dataclasses import dataclass

from kvfence.protocol.words import Peer, Timer
from kvfence.simulation.workload import Arrival
from kvfence.world import happenings as h

Key = tuple[type, tuple[object, ...]]  # kind and parts of what can follow


@dataclass(frozen=True, slots=True)
class Follow:
    """What was drawn for a thing that can follow."""

    key: Key
    happening: h.Happening


@dataclass(frozen=True, slots=True)
class Ring:
    """A timer of a node, as it was set."""

    node: Peer
    timer: Timer
    generation: int


@dataclass(frozen=True, slots=True)
class Blow:
    """Weather with an appointment: a restart, an end of a stop, a new connection."""

    happening: h.Happening


@dataclass(frozen=True, slots=True)
class Heal:
    """The end of a partition."""

    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Tick:
    """A second has passed."""


@dataclass(frozen=True, slots=True)
class Calm:
    """The weather ends."""


Item = Follow | Ring | Blow | Heal | Tick | Calm | Arrival
