"""What nodes know of one another in virtual time: hellos, silence, and the launcher that restarts.

Rules: a node says hello each second; only those hellos are sent that would change something, for the others
are heard and forgotten. Who was silent for longer than five seconds (dead, stopped, behind a partition) is
suspected. It ticks only while somebody is missing. A writer that decode has lost says hello too, though it
must stay lost: once while its cut is under way and once afterwards, for every further one is like those.
"""

from collections.abc import Iterator

from kvfence.protocol import DecodeCore, Reach, RouterCore, events
from kvfence.protocol.words import Peer, Role
from kvfence.simulation.swarm import SECOND
from kvfence.world import Core, Link, World, role_of
from kvfence.world import happenings as h

HELLO_US = SECOND
LOST_AFTER_US = 5 * SECOND


class Neighbours:
    """Who is silent since when, and which ways are cut off."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._silent_since: dict[tuple[Peer, Peer], int] = {}
        self._said_in_vain: set[tuple[Peer, Peer, Reach | None]] = set()  # observer, lost writer
        self.partitions: set[tuple[str, str]] = set()  # ordered pairs of node names

    def is_apart(self, one: Peer, other: Peer) -> bool:
        """Whether a partition stands between them."""
        return bool(self.partitions) and (one.node, other.node) in self.partitions

    def part(self, nodes: frozenset[str], *, heal: bool) -> None:
        """Cut these nodes off from all others, or let them return."""
        names = {peer.node for peer in (*self._world.cores, *self._world.dead)}
        for inside in nodes:
            for outside in names - nodes:
                pairs = {(inside, outside), (outside, inside)}
                self.partitions = self.partitions - pairs if heal else self.partitions | pairs

    def tick(self, now_us: int) -> tuple[list[h.Happening], bool]:
        """Return the hellos and suspicions of this second, and whether somebody is still missing."""
        due: list[h.Happening] = []
        is_troubled = bool(self.partitions or self._world.paused or self._world.dead)
        present = [*self._world.cores, *self._world.dead]
        for observer, core in self._world.cores.items():
            if observer in self._world.paused:
                continue
            for peer in present:
                if peer == observer or role_of(peer) is role_of(observer):
                    continue
                found = self._judge(observer, core, peer, now_us)
                if found is not None:
                    due.append(found)
                    is_troubled = True
        return due, is_troubled

    def _judge(self, observer: Peer, core: Core, peer: Peer, now_us: int) -> h.Happening | None:
        key = (observer, peer)
        if self._world.is_active(peer) and not self.is_apart(observer, peer):
            self._silent_since.pop(key, None)
            is_worth_it = self._would_help(core, peer) or self._is_still_lost(core, peer)
            return h.Announce(peer, observer) if is_worth_it else None
        if not core.peers.is_alive(peer, role_of(peer)):
            return None
        since_us = self._silent_since.setdefault(key, now_us)
        if now_us - since_us <= LOST_AFTER_US:
            return None
        del self._silent_since[key]
        return h.Suspect(observer, peer)

    def _would_help(self, core: Core, peer: Peer) -> bool:
        """Whether a hello of the peer would change anything, and none is under way."""
        known = core.peers.newest(peer.node)
        is_known = known is not None and known.incarnation >= peer.incarnation
        if isinstance(core, RouterCore):
            node = core.nodes.get(peer)
            is_useful = node is None or (node.is_full and self._has_room(peer))
        elif isinstance(core, DecodeCore) and role_of(peer) is Role.PREFILL:
            is_useful = not is_known  # a lost writer comes back under a new incarnation alone
        else:
            is_useful = not is_known or not core.peers.is_alive(peer, role_of(peer))
        if known is not None and known.incarnation > peer.incarnation:
            return False
        return is_useful and not self._is_greeting(peer, core.me)

    def _is_still_lost(self, core: Core, peer: Peer) -> bool:
        """Whether a lost writer has yet to say hello in this stage of its cut."""
        is_writer = isinstance(core, DecodeCore) and role_of(peer) is Role.PREFILL
        if not isinstance(core, DecodeCore) or not is_writer or core.peers.newest(peer.node) != peer:
            return False
        said = (core.me, peer, core.writers.get(peer))
        if core.peers.is_alive(peer, role_of(peer)) or said in self._said_in_vain:
            return False
        if self._is_greeting(peer, core.me):
            return False
        self._said_in_vain.add(said)
        return True

    def _has_room(self, peer: Peer) -> bool:
        return bool(self._world.hello_of(peer, self._world.cores[peer]).free_pages)

    def _is_greeting(self, sender: Peer, receiver: Peer) -> bool:
        wire = self._world.wires.get((sender, receiver), ())
        return any(isinstance(message, events.Hello) for message in wire)

    def renewable(self) -> Iterator[h.Reconnect]:
        """Connections for pages that both ends would set up again: a writer that is lost is not let in."""
        for (writer, decode), link in self._world.links.items():
            core = self._world.decode_core(decode)
            if link is not Link.GONE or core is None or not self._world.is_active(writer):
                continue
            is_let_in = core.writers.get(writer) is Reach.WRITING
            if is_let_in and self._world.is_active(decode) and not self.is_apart(writer, decode):
                yield h.Reconnect(writer, decode)
