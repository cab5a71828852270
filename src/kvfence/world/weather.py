"""What clients, networks and machines do by themselves: come, leave, lose, die, return, stand still.

Rules: a crash takes what the process kept, and not what had left it; a node that returns is a new
incarnation. Whether something makes sense now is not asked here: whoever drives the world picks the weather.
"""

from typing import TypeVar

from kvfence.protocol import DecodeCore, PrefillCore, RouterCore, events
from kvfence.protocol.vocabulary import Event
from kvfence.protocol.words import LeaseId, Peer
from kvfence.world.memory import blank_pool
from kvfence.world.records import Link
from kvfence.world.requests import Client
from kvfence.world.start import make_core
from kvfence.world.state import ROLE_OF, Core, WriteKey
from kvfence.world.transfer import Transfer

S = TypeVar("S")
V = TypeVar("V")


class Weather(Transfer):
    """The events that nobody in the deployment decides."""

    # ------------------------------------------------------------ clients
    def _submit(self, router: Peer, request: int) -> None:
        ask = self.asks[request]
        self.clients[request] = Client()
        self.homes[request] = router
        self.tell(router, events.Submitted(request, len(ask.prompt), ask.max_tokens))

    def _leave(self, request: int) -> None:
        self.tell(self.homes[request], events.ClientGone(request))

    # ------------------------------------------------------------ messages
    def _deliver(self, sender: Peer, receiver: Peer, *, again: bool = False) -> None:
        wire = self.wires[sender, receiver]
        if not again:
            self._shorten(sender, receiver, wire[1:])
        self.tell(receiver, wire[0])

    def _drop(self, sender: Peer, receiver: Peer) -> None:
        self._shorten(sender, receiver, self.wires[sender, receiver][1:])

    def _shorten(self, sender: Peer, receiver: Peer, rest: tuple[Event, ...]) -> None:
        if rest:
            self.wires[sender, receiver] = rest
        else:
            del self.wires[sender, receiver]

    def _announce(self, sender: Peer, receiver: Peer) -> None:
        self.send(sender, receiver, self.hello_of(sender, self.cores[sender]))

    def _stray(self, decode: Peer, lease: LeaseId) -> None:
        self.tell(decode, events.TailCopied(lease))

    def _suspect(self, observer: Peer, peer: Peer) -> None:
        self.tell(observer, events.PeerLost(peer))

    # ------------------------------------------------------------ machines
    def _crash(self, peer: Peer) -> None:
        core = self.cores.pop(peer)
        self.dead[peer] = ROLE_OF[type(core)]
        self.paused.pop(peer, None)
        self.passes.pop(peer, None)
        self._hush(peer)
        self._let_go(self.jobs, peer)
        self._let_go(self.rows, peer)
        self._let_go(self.verifies, peer)
        self._let_go(self.timers, peer)
        self._let_go(self.cuts, peer)
        self._let_go(self.links, peer)
        for key in self._writes_of(peer):
            self._orphan(key)
        if not (isinstance(core, DecodeCore) and self.decisions.adopts_old_pool()):
            self.pools.pop(peer, None)
        if isinstance(core, RouterCore):
            self._lose_clients(peer)

    def _hush(self, peer: Peer) -> None:
        """What was on its way to a process that died arrives nowhere."""
        for wire in [wire for wire in self.wires if wire[1] == peer]:
            del self.wires[wire]

    def _let_go(self, table: dict[tuple[Peer, S], V], peer: Peer) -> None:
        """Take out what a process kept. In place: whoever explores keeps tables of another kind."""
        for key in [key for key in table if key[0] == peer]:
            del table[key]

    def _writes_of(self, peer: Peer) -> list[WriteKey]:
        return [key for key in self.writes if key[0] == peer]

    def _lose_clients(self, router: Peer) -> None:
        for request, client in self.clients.items():
            if self.homes[request] == router and client.end is None:
                self.clients[request] = Client(client.delivered, None, is_lost=True)

    def _restart(self, dead: Peer) -> None:
        """By law 10 with a new pool and a new incarnation, which says hello to everybody."""
        role = self.dead.pop(dead)
        peer = Peer(dead.node, dead.incarnation + 1)
        core = make_core(peer, role, self.config, self.decisions)
        self.cores[peer] = core
        old_pool = self.pools.pop(dead, None)
        if old_pool is not None:
            self.adopted[dead] = peer
            self.pools[peer] = old_pool
        elif isinstance(core, (DecodeCore, PrefillCore)):
            self.pools[peer] = blank_pool(core.ledger.total + 1, self.config.page_tokens)
        self.meet_all(peer, core)

    def meet_all(self, peer: Peer, core: Core) -> None:
        """Link a new process with all others; hellos go both ways."""
        for other, known in list(self.cores.items()):
            if type(known) is not type(core):  # nodes of one role have nothing to say to each other
                self._link(peer, core, other, known)
                self.send(peer, other, self.hello_of(peer, core))
                self.send(other, peer, self.hello_of(other, known))

    def _link(self, peer: Peer, core: Core, other: Peer, known: Core) -> None:
        if isinstance(core, PrefillCore) and isinstance(known, DecodeCore):
            self.links[peer, other] = Link.UP
        elif isinstance(core, DecodeCore) and isinstance(known, PrefillCore):
            self.links[other, peer] = Link.UP

    def _pause(self, peer: Peer) -> None:
        self.paused[peer] = None

    def _resume(self, peer: Peer) -> None:
        del self.paused[peer]
