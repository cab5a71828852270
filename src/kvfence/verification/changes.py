"""From a world back to parts: what a happening changed, place by place."""

from collections.abc import Iterable
from typing import Any

from kvfence.protocol.words import AttemptId, Peer
from kvfence.verification.forms import Content, put_client, put_message, put_page, put_write
from kvfence.verification.forms_cores import Node, put_node
from kvfence.verification.layout import LIVING, Layout, Living, State
from kvfence.verification.parts import Part, Parts, Sink
from kvfence.verification.remembered import RememberedWorld
from kvfence.world import World

NODE_TABLES = ("jobs", "rows", "verifies", "cuts", "timers", "links")


class Maker:
    """Makes parts of one exploration."""

    def __init__(self, layout: Layout, parts: Parts, content: Content) -> None:
        self.layout = layout
        self.parts = parts
        self.content = content

    # ------------------------------------------------------------ parts of one kind each
    def living(self, world: World) -> Part:
        """Who lives, in an order that history does not decide."""
        pools = [peer for peer, _ in _entries(world, "pools")]
        alive = world.living if isinstance(world, RememberedWorld) else world.cores
        value = Living(
            alive=tuple(sorted((peer.node, peer.incarnation) for peer in alive)),
            dead=tuple(sorted((p.node, p.incarnation, role.value) for p, role in world.dead.items())),
            paused=tuple(sorted((peer.node, peer.incarnation) for peer in world.paused)),
            pools=tuple(sorted((peer.node, peer.incarnation) for peer in pools)),
            adopted=tuple(sorted((o.node, o.incarnation, n.incarnation) for o, n in world.adopted.items())),
        )
        sink = self._sink()
        sink.put("living", value.alive, value.dead, value.paused, value.pools, value.adopted)
        return self.parts.intern(value, sink)

    def node(self, core: Any, tables: dict[str, dict[Any, Any]]) -> Part:
        """A node, or that it is dead."""
        node = None if core is None else Node(core, **tables)
        sink = self._sink()
        put_node(sink, self.content, node)
        return self.parts.intern(node, sink)

    def page(self, name: str, page: int, content: Any) -> Part:
        """A page of a pool."""
        sink = self._sink()
        put_page(sink, name, page, content)
        return self.parts.intern(content, sink)

    def writes(self, entries: Iterable[tuple[Any, Any]]) -> Part:
        """The one-sided writes of a prefill node."""
        value = tuple(sorted(entries, key=lambda entry: entry[0]))
        sink = self._sink()
        sink.put("writes", len(value))
        for key, write in value:
            put_write(sink, key, write)
        return self.parts.intern(value, sink)

    def message(self, message: Any) -> Part:
        """A message."""
        sink = self._sink()
        put_message(sink, self.content, message)
        return self.parts.intern(message, sink)

    def wire(self, pair: tuple[str, str], groups: Iterable[tuple[Peer, Peer, tuple[Part, ...]]]) -> Part:
        """What is under way between two nodes, by incarnations."""
        value = tuple(sorted((g for g in groups if g[2]), key=lambda group: group[:2]))
        sink = self._sink()
        sink.put("wire", pair, len(value))
        for sender, receiver, messages in value:
            sink.peer(sender)
            sink.peer(receiver)
            sink.put(len(messages))
            for message in messages:
                sink.put(message.shape.hex())
                sink.names += message.names
                sink.seqs += message.seqs
                sink.bounds += message.bounds
        return self.parts.intern(value, sink)

    def request(self, request: int, client: Any, home: Peer | None, aborted: int) -> Part:
        """What a client has heard."""
        sink = self._sink()
        sink.request(request)
        kind = sink.shape[0]
        put_client(sink, client, home)
        if home is not None and aborted:
            sink.tomb(AttemptId(home.incarnation, request, aborted))
        if sink.bare is not None:
            sink.bare = (sink.bare, kind)
        return self.parts.intern((request, client, home, aborted), sink)

    def budget(self, left: tuple[int, ...]) -> Part:
        """What weather is left."""
        sink = self._sink()
        sink.put("budget", left)
        return self.parts.intern(left, sink)

    def _sink(self) -> Sink:
        return Sink(self.parts.names)

    # ------------------------------------------------------------ a whole world, and what changed in one
    def state_of(self, world: World, left: tuple[int, ...]) -> State:
        """The parts of a world that nobody shares."""
        layout = self.layout
        state: list[Any] = [None] * layout.size
        state[LIVING] = self.living(world)
        cores = {peer.node: core for peer, core in world.cores.items()}
        pools = {peer.node: pool for peer, pool in world.pools.items()}
        for name, place in layout.node.items():
            state[place] = self.node(cores.get(name), self._tables(world, name))
        for place, (name, page) in layout.page_at.items():
            state[place] = self.page(name, page, pools[name][page] if name in pools else None)
        for name, place in layout.writes.items():
            state[place] = self.writes(e for e in world.writes.items() if e[0][0].node == name)
        for pair, place in layout.wires.items():
            groups = [
                (s, r, tuple(self.message(m) for m in wire))
                for (s, r), wire in world.wires.items()
                if (s.node, r.node) == pair
            ]
            state[place] = self.wire(pair, groups)
        for request, place in layout.request.items():
            client, home = world.clients.get(request), world.homes.get(request)
            state[place] = self.request(request, client, home, world.aborted.get(request, 0))
        state[layout.budget] = self.budget(left)
        return tuple(state)

    def changes(self, world: RememberedWorld) -> list[tuple[int, Part]]:
        """What the world's one happening changed."""
        pairs = {place: pair for pair, place in self.layout.wires.items()}
        hushed = [(place, self.wire(pairs[place], ())) for place in sorted(world.hushed)]
        return hushed + [(place, self._changed(world, place)) for place in sorted(world.changed)]

    def _changed(self, world: RememberedWorld, place: int) -> Part:
        layout = self.layout
        if place == LIVING:
            return self.living(world)
        if place in layout.name_at:
            name = layout.name_at[place]
            core = next((core for peer, core in world.lazy["cores"].held() if peer.node == name), None)
            return self.node(core, self._tables(world, name))
        if place in layout.page_at:
            return self._changed_page(world, place)
        if layout.is_writes(place):
            held = world.lazy["writes"].held()
            return self.writes(e for e in held if layout.writes[e[0][0].node] == place)
        if layout.is_wire(place):
            held = world.lazy["wires"].held()
            mine = [(s, r, wire) for (s, r), wire in held if layout.wires[s.node, r.node] == place]
            pair = next(pair for pair, at in layout.wires.items() if at == place)
            return self.wire(pair, [(s, r, tuple(map(self.message, wire))) for s, r, wire in mine])
        request = next(number for number, at in layout.request.items() if at == place)
        client, home = world.clients.get(request), world.homes.get(request)
        return self.request(request, client, home, world.aborted.get(request, 0))

    def _changed_page(self, world: RememberedWorld, place: int) -> Part:
        name, page = self.layout.page_at[place]
        pool = next((pool for peer, pool in _entries(world, "pools") if peer.node == name), None)
        return self.page(name, page, None if pool is None else pool[page])

    def _tables(self, world: World, name: str) -> dict[str, dict[Any, Any]]:
        tables: dict[str, dict[Any, Any]] = {}
        for table in NODE_TABLES:
            tables[table] = {key: v for key, v in _entries(world, table) if key[0].node == name}
        tables["timers"] = {key: v for key, v in tables["timers"].items() if world.timer_is_live(*key)}
        tables["passes"] = {peer: batch for peer, batch in _entries(world, "passes") if peer.node == name}
        return tables


def _entries(world: World, table: str) -> Iterable[tuple[Any, Any]]:
    """What is in a table, without looking at more than was looked at."""
    if isinstance(world, RememberedWorld):
        held: Iterable[tuple[Any, Any]] = world.lazy[table].held()
        return held
    items: Iterable[tuple[Any, Any]] = getattr(world, table).items()
    return items
