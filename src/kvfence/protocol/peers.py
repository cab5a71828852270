"""Which incarnation of which node is the one that may speak.

Rules: of each node the newest incarnation ever heard is known, no other; a newer hello supersedes the
older incarnation; what an older one says is ignored. Names are bounded by `peers_max`. It says nothing
about quiet: a lost or superseded incarnation may still write until it is cut.
"""

from copy import copy
from dataclasses import dataclass
from enum import Enum, unique

from kvfence.protocol.words import Peer, Role


@unique
class Greeting(Enum):
    """What a hello was."""

    NEW = "new"  # the first of its node
    NEWER = "newer"  # supersedes an older incarnation
    BACK = "back"  # of the known incarnation, after it was lost
    AGAIN = "again"
    STALE = "stale"  # of an older incarnation than the known one: ignored
    FULL = "full"  # one node too many: ignored


@dataclass(slots=True)
class KnownPeer:
    """The newest incarnation of a node."""

    peer: Peer
    role: Role
    is_alive: bool


class PeerBook:
    """The newest incarnation of each node, and whether it is alive."""

    __slots__ = ("_known", "_peers_max")

    def __init__(self, peers_max: int) -> None:
        self._known: dict[str, KnownPeer] = {}
        self._peers_max = peers_max

    def fork(self) -> "PeerBook":
        """A book of its own, with the same peers."""
        twin = PeerBook(self._peers_max)
        twin._known = {node: copy(known) for node, known in self._known.items()}
        return twin

    def greet(self, peer: Peer, role: Role) -> tuple[Greeting, Peer | None]:
        """Take note of a hello; return what it was, and the incarnation that it supersedes."""
        known = self._known.get(peer.node)
        if known is None:
            if len(self._known) >= self._peers_max:
                return Greeting.FULL, None
            self._known[peer.node] = KnownPeer(peer, role, is_alive=True)
            return Greeting.NEW, None
        if peer.incarnation < known.peer.incarnation or (peer == known.peer and role is not known.role):
            return Greeting.STALE, None
        if peer.incarnation > known.peer.incarnation:
            self._known[peer.node] = KnownPeer(peer, role, is_alive=True)
            return Greeting.NEWER, known.peer
        if known.is_alive:
            return Greeting.AGAIN, None
        known.is_alive = True
        return Greeting.BACK, None

    def lose(self, peer: Peer) -> bool:
        """Mark the incarnation as lost; return whether it was known and alive."""
        known = self._known.get(peer.node)
        if known is None or known.peer != peer or not known.is_alive:
            return False
        known.is_alive = False
        return True

    def is_alive(self, peer: Peer, role: Role) -> bool:
        """Tell whether this incarnation is the newest of its node, of that role, and alive."""
        known = self._known.get(peer.node)
        return known is not None and known.peer == peer and known.role is role and known.is_alive

    def newest(self, node: str) -> Peer | None:
        """Return the newest incarnation heard of a node, alive or lost."""
        known = self._known.get(node)
        return None if known is None else known.peer

    def alive(self, role: Role) -> list[Peer]:
        """Return the living peers of a role, by node name."""
        return sorted(k.peer for k in self._known.values() if k.is_alive and k.role is role)
