"""How cores hear and speak in a world: one inbox, wires in order, and who carries out a command.

Rules: what a core says is carried out in order before it hears anything new (as `serving.driver` does).
A message to a process that does not live is lost; wires are first in, first out, each ordered pair of
processes has its own. A broken invariant is a finding, not a crash of the world.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from kvfence.protocol import RouterCore, commands, events
from kvfence.protocol.errors import InvariantError
from kvfence.protocol.ledger import PageState
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import Peer, Timer
from kvfence.world.oracle import Kind
from kvfence.world.state import ROLE_OF, Core, WorldState

if TYPE_CHECKING:
    from collections.abc import Callable


class Mail(WorldState):
    """A world whose cores can be told something."""

    CARRY_OUT: ClassVar[dict[type, str]] = {}

    def tell(self, peer: Peer, event: Event) -> None:
        """Let a core take a fact, and carry out what follows, now or after what is under way."""
        self._inbox.append((peer, event))
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._inbox:
                self._step(*self._inbox.popleft())
        except InvariantError as error:
            self._inbox.clear()
            self.find(Kind.LAW, peer, str(error))
        finally:
            self._is_busy = False

    def _step(self, peer: Peer, event: Event) -> None:
        core = self.cores.get(peer)
        if core is None:
            return
        core, said = self.stepper.step(core, event)
        self.cores[peer] = core
        for command in said:
            carry_out: Callable[[Peer, Any, Event], None] = getattr(self, self.CARRY_OUT[type(command)])
            carry_out(peer, command, event)

    def send(self, sender: Peer, receiver: Peer, message: Event) -> None:
        """Put a message on its wire."""
        if receiver not in self.cores:
            receiver = self._successor_of(receiver)
        if receiver in self.cores:
            self.wires[sender, receiver] = (*self.wires.get((sender, receiver), ()), message)

    def _successor_of(self, dead: Peer) -> Peer:
        """Law 10 on the wire: who came after a dead process does not hear what was meant for it.

        Only where the decision is wrong, and the name is enough, a message finds the successor.
        """
        for peer in self.cores:
            if peer.node == dead.node and self.decisions.speaks_for(peer, dead):
                return peer
        return dead

    def hello_of(self, peer: Peer, core: Core) -> events.Hello:
        """What a node says of itself."""
        role = ROLE_OF[type(core)]
        if isinstance(core, RouterCore):
            return events.Hello(peer, role)
        ledger = core.ledger
        free = ledger.free_pages + ledger.count(PageState.CACHED)
        return events.Hello(peer, role, pool_tokens=core.pool_tokens, free_pages=free)

    def _fire(self, peer: Peer, timer: Timer) -> None:
        generation, _ = self.timers.pop((peer, timer))
        self.tell(peer, events.Expired(timer, generation))

    def _ring_late(self, peer: Peer, timer: Timer) -> None:
        """Tell of a deadline that is one no more. Generations count from 1."""
        self.tell(peer, events.Expired(timer, self.old_generation(peer, timer) or 0))
        taken = self.cores[peer].trail
        if taken:
            what = f"an old {timer.kind.value} timer counts: {taken[0].state.value}, {taken[0].fact.value}"
            self.find(Kind.STALE_TIMER, peer, what)

    def _set_timer(self, peer: Peer, command: commands.SetTimer, _event: Event) -> None:
        self.timers[peer, command.timer] = (command.generation, command.after_ms)

    def _nothing(self, peer: Peer, command: Command, event: Event) -> None:
        """Take a command that has no effect in a world (a scrub, say)."""
