"""A world over a state of parts, which takes note of every part that it looks at.

Rules: a container is filled from a part when something in it is asked for, and that part is written down in
`seen`, once, in order. So what a happening does is a function of exactly the parts in `seen`: that is what
makes remembering it sound, whatever the world's code does. What is put on a wire is written down in
`spoken` instead, so that it does not depend on what the wire holds. No core is changed in place.
"""

from typing import Any

from kvfence.protocol.errors import InvariantError
from kvfence.protocol.laws import check_laws
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import Peer, Role
from kvfence.verification.forking import fork_core
from kvfence.verification.forms_cores import Node
from kvfence.verification.layout import LIVING, Layout, Living, State
from kvfence.verification.lazy import Lazy, LazyCores, LazyPool, LazyPools
from kvfence.verification.parts import Part
from kvfence.world import Core, World, Write
from kvfence.world.oracle import Kind
from kvfence.world.state import WriteKey

Question = tuple[int, tuple[int, int, int, int]]  # place of a node; incarnation, sequence, page, epoch
Taken = tuple[str, Any, Any]  # role, state, fact


class Forking:
    """The stepper: a copy takes the event. Laws are asked of every core that comes out of a step."""

    def __init__(self, world: "RememberedWorld") -> None:
        self._world = world

    def step(self, core: Core, event: Event) -> tuple[Core, list[Command]]:
        """Step a copy. Raises InvariantError as the core does."""
        twin = fork_core(core)
        said = twin.step(event)
        self._world.taken.update((type(twin).__name__, row.state, row.fact) for row in twin.trail)
        try:
            check_laws(twin)
        except InvariantError as error:
            self._world.find(Kind.LAW, twin.me, str(error))
        return twin, said


class RememberedWorld(World):
    """A world for one happening."""

    def __init__(self, layout: Layout, state: State, base: World) -> None:
        super().__init__(base.config, base.decisions, base.asks, Forking(self))
        self.layout = layout
        self.seen: list[tuple[int | Question, object]] = []
        self.changed: set[int] = set()
        self.hushed: set[int] = set()  # wires on which nothing is left
        self.spoken: list[tuple[Peer, Peer, Event]] = []
        self.taken: set[Taken] = set()
        self._state = state
        self._looked: dict[int, Part] = {}
        self._living: dict[Peer, None] = {}
        self._lay_out()

    def _lay_out(self) -> None:
        layout, nodes = self.layout, list(self.layout.node.values())

        def by_node() -> Any:
            return Lazy(self, lambda key: layout.node[key[0].node], nodes)

        def by_request() -> Any:
            return Lazy(self, lambda key: layout.request[key], list(layout.request.values()))

        def of_living() -> Any:
            return Lazy(self, lambda _key: LIVING, [LIVING])

        wires, writes = list(layout.wires.values()), list(layout.writes.values())
        self.lazy: dict[str, Any] = {
            "cores": LazyCores(self, lambda key: layout.node[key.node], nodes),
            "passes": Lazy(self, lambda key: layout.node[key.node], nodes),
            "pools": LazyPools(self),
            "wires": Lazy(self, lambda key: layout.wires[key[0].node, key[1].node], wires),
            "writes": Lazy(self, lambda key: layout.writes[key[0].node], writes),
            **{name: by_node() for name in ("jobs", "rows", "verifies", "cuts", "timers", "links")},
            **{name: of_living() for name in ("dead", "paused", "adopted")},
            **{name: by_request() for name in ("clients", "homes", "aborted")},
        }
        self.__dict__.update(self.lazy)

    # ------------------------------------------------------------ looking
    @property
    def living(self) -> dict[Peer, None]:
        """Who lives."""
        self.look(LIVING)
        return self._living

    def look(self, place: int) -> Part:
        """Take note of a part, and fill the containers from it."""
        part = self._looked.get(place)
        if part is None:
            part = self._looked[place] = self._state[place]
            self.seen.append((place, part))
            self._fill(place, part.value)
        return part

    def _fill(self, place: int, value: Any) -> None:
        layout = self.layout
        if place == LIVING:
            self._fill_living(value)
        elif place in layout.name_at:
            if value is not None:
                self._fill_node(value)
        elif place in layout.page_at or place == layout.budget:
            return
        elif layout.is_writes(place):
            for key, write in value:
                self.lazy["writes"].fill(key, write)
        elif layout.is_wire(place):
            for sender, receiver, messages in value:
                self.lazy["wires"].fill((sender, receiver), tuple(m.value for m in messages))
        else:
            self._fill_request(value)

    def _fill_living(self, living: Living) -> None:
        self._living = {Peer(*peer): None for peer in living.alive}
        for node, incarnation, role in living.dead:
            self.lazy["dead"].fill(Peer(node, incarnation), Role(role))
        for peer in living.paused:
            self.lazy["paused"].fill(Peer(*peer), None)
        for node, old, new in living.adopted:
            self.lazy["adopted"].fill(Peer(node, old), Peer(node, new))
        for peer in living.pools:
            self.lazy["pools"].fill(Peer(*peer), LazyPool(self, self.layout.pages[peer[0]]))

    def _fill_node(self, node: Node) -> None:
        self.lazy["cores"].fill(node.core.me, node.core)
        for name in ("jobs", "rows", "passes", "verifies", "cuts", "timers", "links"):
            container = self.lazy[name]
            for key, value in getattr(node, name).items():
                container.fill(key, value)

    def _fill_request(self, value: Any) -> None:
        request, client, home, aborted = value
        if client is not None:
            self.lazy["clients"].fill(request, client)
            self.lazy["homes"].fill(request, home)
        if aborted:
            self.lazy["aborted"].fill(request, aborted)

    # ------------------------------------------------------------ what a world does otherwise here
    def send(self, sender: Peer, receiver: Peer, message: Event) -> None:
        """Take note that it was said; whoever puts states together puts it on the wire."""
        if receiver not in self.living:
            receiver = self._successor_of(receiver)
        if receiver in self.living:
            self.spoken.append((sender, receiver, message))

    def _successor_of(self, dead: Peer) -> Peer:
        """As `Mail` does, without looking at anything but who lives."""
        named = (peer for peer in self.living if peer.node == dead.node)
        return next((peer for peer in named if self.decisions.speaks_for(peer, dead)), dead)

    def _crash(self, peer: Peer) -> None:
        self.spoken = [said for said in self.spoken if said[1] != peer]
        super()._crash(peer)

    def _hush(self, peer: Peer) -> None:
        """Whatever is on the wires to a node is for its living incarnation: nobody has to look at it."""
        self.hushed = {place for pair, place in self.layout.wires.items() if pair[1] == peer.node}

    def _let_go(self, table: Any, peer: Peer) -> None:
        """The process was looked at when it died: what it kept is here, and what others keep is theirs."""
        for key in [key for key, _ in table.held() if key[0] == peer]:
            del table[key]

    def _writes_of(self, peer: Peer) -> list[WriteKey]:
        if peer.node not in self.layout.writes:
            return []
        self.look(self.layout.writes[peer.node])
        return [key for key, _ in self.lazy["writes"].held() if key[0] == peer]

    def _judge_target(self, key: WriteKey, write: Write, target: Peer) -> None:
        """Ask the one thing that matters of decode's core, so that a landing does not depend on the rest."""
        if target not in self.cores:
            return
        ref = write.targets[write.at]
        question = (target.incarnation, key[1].sequence, ref.page, ref.epoch)
        place = self.layout.node[target.node]
        owns = owns_page(self._state[place], question)
        self.seen.append(((place, question), owns))
        if target != write.decode or not owns:
            self.find(Kind.LATE_WRITE, target, f"a write of {key[1]} lands in {ref}, which it has no longer")


def owns_page(part: Part, question: tuple[int, int, int, int]) -> bool:
    """Whether a lease has a page of a decode node, now."""
    known = part.cache.get(question)
    if known is None:
        incarnation, sequence, page, epoch = question
        core = None if part.value is None else part.value.core
        if core is None or core.me.incarnation != incarnation:
            known = False
        else:
            known = core.ledger.owner[page] == sequence and core.ledger.epoch[page] == epoch
        part.cache[question] = known
    return bool(known)
