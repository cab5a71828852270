"""Where each part of a global state stands in its tuple.

A state is one tuple of parts: who lives, a part for each node, for each page of each pool, for the writes of
each prefill node, for each wire between two nodes, for each request, and last what weather is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from kvfence.verification.parts import Part
from kvfence.world import Ask, WorldConfig

State = tuple[Part, ...]
LIVING = 0  # the place of who lives


@dataclass(frozen=True, slots=True)
class Living:
    """Who lives, who stands still, whose memory is mapped."""

    alive: tuple[tuple[str, int], ...]  # node, incarnation
    dead: tuple[tuple[str, int, str], ...]  # node, incarnation, role
    paused: tuple[tuple[str, int], ...]
    pools: tuple[
        tuple[str, int], ...
    ]  # whose pool stands: the node's living incarnation, or (a fault) a dead one
    adopted: tuple[tuple[str, int, int], ...]  # node, dead incarnation, whose memory the other one kept


class Layout:
    """Places by name."""

    def __init__(self, config: WorldConfig, asks: Mapping[int, Ask]) -> None:
        self.routers = [f"router{n}" for n in range(config.routers)]
        self.prefills = [f"prefill{n}" for n in range(config.prefills)]
        self.decodes = [f"decode{n}" for n in range(config.decodes)]
        self.names = [*self.routers, *self.prefills, *self.decodes]
        places = count(1)
        self.node = {name: next(places) for name in self.names}
        sizes = dict.fromkeys(self.prefills, config.prefill_pages + 1)
        sizes |= dict.fromkeys(self.decodes, config.decode_pages + config.decode_spare_pages + 1)
        self.pages = {name: [next(places) for _ in range(size)] for name, size in sizes.items()}
        self.writes = {name: next(places) for name in self.prefills}
        self.wires = {pair: next(places) for pair in self._pairs()}
        self.request = {number: next(places) for number in asks}
        self.budget = next(places)
        self.size = self.budget + 1
        self.page_at = {
            place: (name, page) for name, all_ in self.pages.items() for page, place in enumerate(all_)
        }
        self._writes_at = frozenset(self.writes.values())
        self._wires_at = frozenset(self.wires.values())
        self.name_at = {place: name for name, place in self.node.items()}

    def _pairs(self) -> list[tuple[str, str]]:
        roles = (self.routers, self.prefills, self.decodes)
        return [
            (sender, receiver)
            for speaking in roles
            for hearing in roles
            if speaking is not hearing
            for sender in speaking
            for receiver in hearing
        ]

    def is_writes(self, place: int) -> bool:
        """Whether the writes of a prefill node stand there."""
        return place in self._writes_at

    def is_wire(self, place: int) -> bool:
        """Whether a wire stands there."""
        return place in self._wires_at
