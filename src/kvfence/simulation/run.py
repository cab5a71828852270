"""One run: a whole deployment in virtual time, driven by one seed, watched by the oracle.

Rules: the world says what can follow, the agenda says when; what is no longer possible when its time comes
is dropped. First weather blows (the safety phase), then it is calm, everybody returns and timers run (the
liveness phase): then every request must have ended, every page must be home, and a fresh request is served.
A run ends at the first finding of a kind that it stops at. One `random.Random` and no order of a set decide
anything.
"""

from random import Random

from kvfence.protocol import CORRECT, Decisions, DecodeCore
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.laws import check_laws
from kvfence.simulation.agenda import Agenda
from kvfence.simulation.delays import Delays
from kvfence.simulation.gusts import Gusts
from kvfence.simulation.home import asks_in_vain, not_home
from kvfence.simulation.items import Blow, Calm, Follow, Heal, Item, Key, Ring, Tick
from kvfence.simulation.launcher import Launcher
from kvfence.simulation.neighbours import HELLO_US, Neighbours
from kvfence.simulation.outcome import NOBODY, Outcome, Step, ends_of
from kvfence.simulation.possible import is_possible
from kvfence.simulation.probes import Watcher, sights
from kvfence.simulation.served import all_asks, fresh_submit, unserved, waits_in_vain
from kvfence.simulation.swarm import MS, SECOND, Feature, Swarm
from kvfence.simulation.workload import Arrival
from kvfence.world import Kind, World, make_world
from kvfence.world import happenings as h

HAPPENINGS_MAX = 20_000  # of one run; a run that needs more is a finding
LAWS_EVERY = 64  # happenings between two checks of all laws
STOPPED_US = 50 * MS  # between two looks at whether a stopped process goes on
KNOCK_AGAIN_US = 300 * MS  # a client finds no router
ALL_KINDS = frozenset(Kind)


class Run:
    """The world of one swarm configuration, and its time."""

    def __init__(
        self,
        swarm: Swarm,
        decisions: Decisions = CORRECT,
        *,
        stops_at: frozenset[Kind] = ALL_KINDS,
        checks_laws: bool = True,
    ) -> None:
        """`checks_laws` False leaves it to the oracle, and to what the cores themselves insist on."""
        self._swarm = swarm
        self._checks_laws = checks_laws
        self._stops_at = stops_at
        self._watcher = Watcher()
        self.world: World = make_world(swarm.world, decisions, all_asks(swarm), self._watcher)
        self._rng = Random(swarm.seed ^ 0x5EED)  # noqa: S311 -- a seed must replay
        self._delays = Delays(swarm, self._rng)
        self._gusts = Gusts(swarm, self._rng)
        self._neighbours = Neighbours(self.world)
        self._agenda: Agenda[Item] = Agenda()
        self._launcher = Launcher(swarm, self.world, self._neighbours, self._agenda, self._rng)
        self._pending: dict[Key, int] = {}
        self._is_ticking = False
        self._is_patient = False  # deadlines wait until nothing else goes on, and no hello is due
        self.script: list[Step] = []

    # ------------------------------------------------------------ the loop
    def go(self) -> Outcome:
        """Run to the end."""
        for arrival in self._swarm.arrivals:
            self._agenda.add(arrival.at_us, arrival)
        self._agenda.add(self._swarm.calm_us, Calm())
        self._run_out()
        if not self.world.findings:
            self._ask_afresh()
        return self._outcome()

    def _run_out(self) -> None:
        """Let happen what is due, until nothing is; then everything must be home."""
        while len(self._agenda) and not self._is_over():
            self._take(*self._agenda.pop())
        if not self.world.findings:
            self._check_laws()
            for what in not_home(self.world):
                self.world.find(Kind.NOT_HOME, NOBODY, what)

    def _ask_afresh(self) -> None:
        """A deployment that has come home must still serve. Deadlines are too long to matter here."""
        self._is_patient = True
        while not self.world.findings and (submit := fresh_submit(self.world, self._swarm)) is not None:
            self._perform(submit)
            self._look()
            self._run_out()
            what = unserved(self.world, submit.request)
            if what is None:
                self._watcher.see("fresh request served when all is home")
            else:
                self.world.find(Kind.UNSERVED, NOBODY, what)

    def _is_over(self) -> bool:
        if len(self.script) >= HAPPENINGS_MAX:
            self.world.find(Kind.NOT_HOME, NOBODY, f"no end after {HAPPENINGS_MAX} happenings")
            return True
        if self.world.catches and Kind.FENCE in self._stops_at and not self.world.findings:
            self.world.find(Kind.FENCE, NOBODY, f"{', '.join(self.world.catches)} spoke")
        return any(finding.kind in self._stops_at for finding in self.world.findings)

    def _take(self, number: int, item: Item) -> None:
        match item:
            case Follow():
                if self._pending.get(item.key) != number:
                    return
                del self._pending[item.key]
                self._perform(item.happening)
                self._blow()
            case Ring():
                self._ring(item)
            case Blow():
                self._launcher.kept(item.happening)
                if is_possible(self.world, item.happening):
                    self._perform(item.happening)
            case Arrival():
                self._arrive(item)
            case Heal():
                self._neighbours.part(item.nodes, heal=True)
                self._launcher.look()
            case Tick():
                self._tick()
            case Calm():
                self._calm_down()
        self._look()

    def _perform(self, happening: h.Happening) -> None:
        for name in sights(self.world, happening):
            self._watcher.see(name)
        self.script.append((self._agenda.now_us, happening))
        self.world.perform(happening)
        if len(self.script) % LAWS_EVERY == 0:
            self._check_laws()
        self._launcher.after(happening)
        self._wake()

    def _check_laws(self) -> None:
        if not self._checks_laws:
            return
        for peer, core in self.world.cores.items():
            try:
                check_laws(core)
            except InvariantError as error:
                self.world.find(Kind.LAW, peer, str(error))

    # ------------------------------------------------------------ what follows
    def _look(self) -> None:
        """Give everything that has become possible its time; forget what no longer is."""
        known, pending = self._pending, {}
        is_parted = bool(self._neighbours.partitions)
        for happening in self.world.following():
            if is_parted and self._is_apart(happening):
                continue
            key = (type(happening), tuple(happening))
            number = known.get(key)
            pending[key] = self._schedule(key, happening) if number is None else number
        self._pending = pending
        for peer, told in self._watcher.timers_set:
            self._agenda.add(told.after_ms * MS, Ring(peer, told.timer, told.generation))
        self._watcher.timers_set.clear()

    def _schedule(self, key: Key, happening: h.Following) -> int:
        drawn, after_us = self._delays.draw(self.world, happening)
        return self._agenda.add(after_us, Follow(key, drawn))

    def _ring(self, ring: Ring) -> None:
        """A timer rings; that of a stopped process as soon as it goes on."""
        set_to = self.world.timers.get((ring.node, ring.timer))
        if set_to is None or set_to[0] != ring.generation or ring.node not in self.world.cores:
            return
        fire = h.Fire(ring.node, ring.timer)
        if not self.world.timer_is_live(*fire) or (self._delays.is_calm and asks_in_vain(self.world, fire)):
            return
        is_early = self._is_patient and (self._is_ticking or next(self.world.following(), None) is not None)
        if ring.node in self.world.paused or is_early:
            self._agenda.add(STOPPED_US, ring)
            return
        vain = waits_in_vain(self.world, fire) if self._delays.is_calm else None
        if vain is not None:
            self.world.find(Kind.UNSERVED, ring.node, vain)
        self._perform(fire)
        self._blow()

    def _is_apart(self, happening: h.Following) -> bool:
        match happening:
            case h.Deliver():
                return self._neighbours.is_apart(happening.sender, happening.receiver)
            case h.Land():
                write = self.world.writes[happening.writer, happening.lease, happening.batch]
                return self._neighbours.is_apart(happening.writer, write.decode)
        return False

    # ------------------------------------------------------------ clients
    def _arrive(self, arrival: Arrival) -> None:
        """The client comes to its router, whichever incarnation that is now; where there is none it waits."""
        node = f"router{arrival.router}"
        found = [peer for peer in self.world.routers() if peer.node == node and self.world.is_active(peer)]
        if found:
            self._perform(h.Submit(found[0], arrival.ask.request))
        else:
            self._agenda.add(KNOCK_AGAIN_US, arrival)
            self._wake()

    # ------------------------------------------------------------ weather
    def _blow(self) -> None:
        """Let the weather do what it likes, after what followed by itself."""
        feature = None if self._delays.is_calm else self._gusts.draw()
        if feature is None:
            return
        if feature is Feature.PARTITIONS:
            nodes = self._gusts.apart(self.world)
            self._neighbours.part(nodes, heal=False)
            self._agenda.add(self._rng.choice((200 * MS, 3 * SECOND, 8 * SECOND)), Heal(nodes))
            self._wake()
            return
        for happening in list(self._gusts.happenings(self.world, feature)):
            if is_possible(self.world, happening):
                self._perform(happening)

    def _calm_down(self) -> None:
        """Nothing is lost, late or broken from here on; stopped processes go on, partitions heal."""
        self._delays.is_calm = True
        self._neighbours.partitions = set()
        for peer in list(self.world.paused):
            self._perform(h.Resume(peer))
        self._launcher.look()
        self._wake()

    # ------------------------------------------------------------ hellos
    def _wake(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._agenda.add(HELLO_US, Tick())

    def _tick(self) -> None:
        self._is_ticking = False
        due, is_troubled = self._neighbours.tick(self._agenda.now_us)
        for happening in due:
            if is_possible(self.world, happening):
                self._perform(happening)
        self._launcher.look()
        if is_troubled:
            self._wake()

    # ------------------------------------------------------------ the end
    def _outcome(self) -> Outcome:
        world = self.world
        asked = {arrival.ask.request for arrival in self._swarm.arrivals}  # a fresh one is no client's
        clients = [client for request, client in world.clients.items() if request in asked]
        return Outcome(
            seed=self._swarm.seed,
            findings=tuple(world.findings),
            virtual_us=self.script[-1][0] if self.script else 0,
            happenings=len(self.script),
            requests=len(clients),
            ends=ends_of(clients),
            probes=self._watcher.counts(),
            rows=tuple((type(state).__name__, state.name, fact.name) for state, fact in self._watcher.rows),
            catches=dict(world.catches),
            quarantined=sum(
                core.quarantined_pages for core in world.cores.values() if isinstance(core, DecodeCore)
            ),
            script=tuple(self.script) if world.findings else (),
        )
