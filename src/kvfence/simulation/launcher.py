"""Those who mend: the launcher restarts the dead and kills who was cut, transports connect again.

Rules: each mending has one appointment at a time. A writer that was cut is dead or will be killed, unless the
run says that its transport cuts without killing; a stopped process goes on by itself.
"""

from random import Random

from kvfence.simulation.agenda import Agenda
from kvfence.simulation.items import Blow, Item
from kvfence.simulation.neighbours import Neighbours
from kvfence.simulation.swarm import MS, SECOND, Feature, Swarm
from kvfence.world import World
from kvfence.world import happenings as h


class Launcher:
    """Makes the appointments that follow from what has just happened."""

    def __init__(
        self, swarm: Swarm, world: World, neighbours: Neighbours, agenda: Agenda[Item], rng: Random
    ) -> None:
        self._kills_the_cut = Feature.LIVING_CUTS not in swarm.features
        self._world = world
        self._neighbours = neighbours
        self._agenda = agenda
        self._rng = rng
        self._appointed: dict[tuple[type, h.Happening], None] = {}

    def after(self, happening: h.Happening) -> None:
        """Look at what was performed, and at who is dead and which connection is gone."""
        if type(happening) is h.Pause:
            self._appoint(h.Resume(happening.peer), (100 * MS, 2 * SECOND, 9 * SECOND))
        elif type(happening) is h.CutDone and happening.writer in self._world.cores and self._kills_the_cut:
            self._appoint(h.Crash(happening.writer), (0, 5 * MS, SECOND))
        self.look()

    def look(self) -> None:
        """See to the dead, and to connections that are gone."""
        for peer in self._world.dead:
            self._appoint(h.Restart(peer), (0, 50 * MS, SECOND, 7 * SECOND))
        for renewal in self._neighbours.renewable():
            self._appoint(renewal, (10 * MS, 500 * MS))

    def _appoint(self, happening: h.Happening, spans_us: tuple[int, ...]) -> None:
        key = (type(happening), happening)
        if key not in self._appointed:
            self._appointed[key] = None
            self._agenda.add(self._rng.choice(spans_us), Blow(happening))

    def kept(self, happening: h.Happening) -> None:
        """The appointment's time has come."""
        self._appointed.pop((type(happening), happening), None)
