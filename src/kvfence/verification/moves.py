"""What can happen next, by parts: each part says once what it makes possible.

`World.enabled` says the same of a whole world (a test compares the two); here the answer is kept with the
part. Weather is offered where it makes sense: a peer is taken for lost without cost only when it is dead or
stands still, a connection is renewed only to a decode node that has not begun to cut this writer, a hello
is said only where it tells something new.
"""

from collections.abc import Iterator
from typing import Any

from kvfence.protocol import DecodeCore, RouterCore
from kvfence.protocol.decode_records import Reach
from kvfence.protocol.decode_table import DecodeState
from kvfence.protocol.words import Peer, Role, Timer, TimerKind
from kvfence.verification.changes import Maker
from kvfence.verification.forms_cores import Node
from kvfence.verification.layout import Layout, Living
from kvfence.verification.memo import Root
from kvfence.verification.parts import Part
from kvfence.verification.scopes import COST, TIMER_COST, Scope
from kvfence.world import Core, Link, role_of
from kvfence.world import happenings as h

SUBMITTED, LEFT = 0, 1


class Move:
    """One thing that can happen in a state.

    `cost` is the place of its budget, None when it is free. `node` must not stand still. `place` and `rest`:
    the wire that its message leaves, and what is left of it. A `timer` is free when nothing else goes on.
    """

    __slots__ = ("cost", "happening", "is_hello", "node", "number", "place", "rest", "root", "timer")

    def __init__(
        self,
        happening: Any,
        root: Root | None,
        *,
        node: Peer | None = None,
        cost: int | None = None,
        taken: tuple[int, Part] | None = None,
        timer: bool = False,
    ) -> None:
        self.happening = happening
        self.root = root
        self.node = node
        self.cost = cost
        self.place: int = taken[0] if taken else 0
        self.rest: Part | None = taken[1] if taken else None
        self.timer = timer
        self.is_hello = isinstance(happening, h.Announce)
        self.number: int | None = None  # in the path of a search

    def stands_still(self, paused: tuple[tuple[str, int], ...]) -> bool:
        """Whether the node that would do it is stopped."""
        return self.node is not None and (self.node.node, self.node.incarnation) in paused


class PartMoves:
    """What a part makes possible: `following` goes on by itself, what else there is does not."""

    __slots__ = ("calm", "following", "gone", "timers", "weather")

    def __init__(self) -> None:
        self.following: list[Move] = []
        self.timers: list[Move] = []
        self.weather: list[Move] = []
        self.calm: list[Move] = []  # hellos of nodes that are thought to be full
        self.gone: list[tuple[Peer, Peer]] = []  # connections that could be renewed


class Moves:
    """Makes and keeps the moves of one exploration."""

    def __init__(self, scope: Scope, layout: Layout, maker: Maker) -> None:
        self.scope = scope
        self.layout = layout
        self.maker = maker
        self._roots: dict[tuple[Any, Part | None], Root] = {}
        counts = scope.weather.counts()
        self._has = [count > 0 for count in counts]

    def root(self, happening: Any, message: Part | None = None) -> Root:
        """The tree of a happening; a delivery is one with its message."""
        key = (happening, message)
        root = self._roots.get(key)
        if root is None:
            root = self._roots[key] = Root(happening, message)
        return root

    def _weather(self, moves: PartMoves, name: str, happening: Any, node: Peer | None = None) -> None:
        if self._has[COST[name]]:
            moves.weather.append(Move(happening, self.root(happening), node=node, cost=COST[name]))

    # ------------------------------------------------------------ wires
    def of_wire(self, place: int, part: Part) -> PartMoves:
        """Deliveries, losses and repetitions of the oldest message of each pair of incarnations."""
        moves = part.moves = PartMoves()
        for index, (sender, receiver, messages) in enumerate(part.value):
            rest = self._without(part, index)
            root = self.root(h.Deliver(sender, receiver), messages[0])
            taken = (place, rest)
            moves.following.append(Move(root.happening, root, node=receiver, taken=taken))
            if self._has[COST["drop"]]:
                lost = h.Drop(sender, receiver)
                moves.weather.append(Move(lost, None, cost=COST["drop"], taken=taken))
            if self._has[COST["repeat"]]:
                again = h.Repeat(sender, receiver)
                moves.weather.append(Move(again, root, node=receiver, cost=COST["repeat"]))
        return moves

    def _without(self, part: Part, index: int) -> Part:
        groups = list(part.value)
        sender, receiver, messages = groups[index]
        groups[index] = (sender, receiver, messages[1:])
        return self.maker.wire((sender.node, receiver.node), groups)

    def with_message(self, part: Part, sender: Peer, receiver: Peer, message: Part) -> Part:
        """The wire after one more message."""
        key = (sender, receiver, message)
        known: Part | None = part.cache.get(key)
        if known is None:
            groups = {group[:2]: group[2] for group in part.value}
            groups[sender, receiver] = (*groups.get((sender, receiver), ()), message)
            known = self.maker.wire((sender.node, receiver.node), [(*k, v) for k, v in groups.items()])
            part.cache[key] = known
        return known

    # ------------------------------------------------------------ writes
    def of_writes(self, part: Part) -> PartMoves:
        """How each write goes on."""
        moves = part.moves = PartMoves()
        for key, write in part.value:
            writer = key[0]
            if not write.has_landed and not (write.halts and not write.is_orphan):
                self._follow(moves, h.Land(*key), writer)
            elif not write.is_orphan:
                self._follow(moves, h.Complete(*key) if write.has_landed else h.Stop(*key), writer)
            if write.is_orphan:
                moves.weather.append(Move(h.Vanish(*key), self.root(h.Vanish(*key))))
            else:
                self._weather(moves, "fail_loud", h.FailWrite(writer, key[1], key[2], quiet=False), writer)
                self._weather(moves, "fail_quiet", h.FailWrite(writer, key[1], key[2], quiet=True), writer)
        return moves

    def _follow(self, moves: PartMoves, happening: Any, node: Peer) -> None:
        moves.following.append(Move(happening, self.root(happening), node=node))

    # ------------------------------------------------------------ nodes
    def of_node(self, part: Part) -> PartMoves:
        """Verification, passes, cuts, connections and timers of one node."""
        moves = part.moves = PartMoves()
        node: Node | None = part.value
        if node is None:
            return moves
        me = node.core.me
        for _, lease in node.verifies:
            self._follow(moves, h.Verify(me, lease), me)
        if me in node.passes:
            self._follow(moves, h.Retire(me), me)
        elif self._is_ready(node):
            self._follow(moves, h.Launch(me), me)
        if isinstance(node.core, DecodeCore):
            for lease, record in node.core.leases.items():
                if record.state is DecodeState.RESERVED:
                    self._weather(moves, "stray", h.Stray(me, lease), me)
        for _, writer in node.cuts:
            self._follow(moves, h.CutDone(me, writer), me)
            self._weather(moves, "cut_fails", h.CutFails(me, writer), me)
        for (_, decode), link in node.links.items():
            if link is Link.FALLING:
                self._follow(moves, h.Destroyed(me, decode), me)
            elif link is Link.GONE:
                moves.gone.append((me, decode))
        for _, timer in node.timers:
            fire = h.Fire(me, timer)
            cost = TIMER_COST[timer.kind]
            moves.timers.append(Move(fire, self.root(fire), node=me, cost=cost, timer=True))
        for timer in old_timers(node.core):
            self._weather(moves, "stale_timer", h.RingLate(me, timer), me)
        return moves

    def _is_ready(self, node: Node) -> bool:
        """As `World._rows_ready` and `World._chunk_ready`."""
        size = self.scope.config.page_tokens
        has_row = any(row.position // size < len(row.table) for row in node.rows.values())
        return has_row or any(job.computed < job.tokens for job in node.jobs.values())

    # ------------------------------------------------------------ who lives
    def of_living(self, part: Part) -> PartMoves:
        """Crashes, pauses and their ends."""
        moves = part.moves = PartMoves()
        living: Living = part.value
        for peer in (Peer(*pair) for pair in living.alive):
            self._weather(moves, f"crash_{role_of(peer).value}", h.Crash(peer))
            if (peer.node, peer.incarnation) in living.paused:
                moves.weather.append(Move(h.Resume(peer), self.root(h.Resume(peer))))
            else:
                self._weather(moves, "pause", h.Pause(peer))
        if self.scope.restarts:
            for node, incarnation, _ in living.dead:
                restart = h.Restart(Peer(node, incarnation))
                moves.weather.append(Move(restart, self.root(restart)))
        return moves

    def of_pair(self, living_part: Part, part: Part) -> PartMoves:
        """What a node may think of others: lost, or worth a hello."""
        known: PartMoves | None = part.cache.get(living_part)
        if known is None:
            known = part.cache[living_part] = PartMoves()
            if part.value is not None:
                self._watch(known, living_part.value, part.value)
        return known

    def _watch(self, moves: PartMoves, living: Living, node: Node) -> None:
        me = node.core.me
        alive = {Peer(*pair) for pair in living.alive}
        paused = {Peer(*pair) for pair in living.paused}
        for peer in sorted(_trusted(node)):
            if peer in alive and peer not in paused:
                self._weather(moves, "suspect", h.Suspect(me, peer), me)
            else:
                self._follow(moves, h.Suspect(me, peer), me)
        for peer in sorted(alive - paused - {me}):
            if not _hears(node, peer):
                continue
            hello = h.Announce(peer, me)
            if not _knows(node, peer):
                moves.weather.append(Move(hello, self.root(hello), node=peer))
            elif _thinks_full(node, peer):
                moves.calm.append(Move(hello, self.root(hello), node=peer))
            else:
                self._weather(moves, "hello", hello, peer)

    # ------------------------------------------------------------ clients
    def of_request(self, living_part: Part, part: Part) -> list[Move]:
        """A client comes (to any router that lives), or goes."""
        known: list[Move] | None = part.cache.get(living_part)
        if known is not None:
            return known
        request, client, _, _ = part.value
        moves: list[Move] = []
        if client is None:
            for node, incarnation in living_part.value.alive:
                if node in self.layout.routers:
                    submit = h.Submit(Peer(node, incarnation), request)
                    moves.append(Move(submit, self.root(submit), node=submit.router))
        elif client.end is None and not client.is_lost and self._has[COST["leave"]]:
            leave = h.Leave(request)
            moves.append(Move(leave, self.root(leave), cost=COST["leave"]))
        part.cache[living_part] = moves
        return moves


def old_timers(core: Core) -> Iterator[Timer]:
    """Every timer that may have been set before; a core that is asked knows better."""
    if isinstance(core, RouterCore):
        kinds = (TimerKind.REQUEST, TimerKind.QUEUE)
        yield from (Timer(kind, request) for request in core.requests for kind in kinds)
    elif isinstance(core, DecodeCore):
        granted = (TimerKind.LEASE, TimerKind.CLOSE_RETRY, TimerKind.GROWTH)
        yield from (Timer(kind, lease) for lease in core.leases for kind in granted)
    else:
        for lease, record in core.leases.items():
            done = frozenset(range(1, record.next_batch)) - (record.in_flight - record.stopped)
            yield from (Timer(TimerKind.BATCH, (lease, batch)) for batch in sorted(done))


def _trusted(node: Node) -> Iterator[Peer]:
    """Peers that the node takes for alive."""
    for role in Role:
        yield from node.core.peers.alive(role)


def _hears(node: Node, peer: Peer) -> bool:
    """Whether hellos of that peer's role are for the node.

    A writer that decode has lost says hello all the same, as it does every second: it must stay lost.
    """
    return role_of(node.core.me) is not role_of(peer)


def _knows(node: Node, peer: Peer) -> bool:
    return node.core.peers.is_alive(peer, role_of(peer))


def _thinks_full(node: Node, peer: Peer) -> bool:
    core = node.core
    return isinstance(core, RouterCore) and peer in core.nodes and core.nodes[peer].is_full


def still_writes(node: Node | None, decode: Peer, writer: Peer) -> bool:
    """Whether a decode node would admit a new connection of the writer: it knows it and does not cut it."""
    if node is None or not isinstance(node.core, DecodeCore) or node.core.me != decode:
        return False
    return node.core.writers.get(writer) is Reach.WRITING
