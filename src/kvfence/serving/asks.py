"""What routers asked a decode node for, by attempt and by the lease that was granted for it.

The core knows attempts, leases and pages; what it need not know of an ask (sampling, earlier output, what
came with the writer's Closed) stands here. An ask that was refused, or has ended, leaves nothing.
"""

from dataclasses import dataclass

from kvfence.protocol.words import AttemptId, LeaseId, Peer
from kvfence.serving.wire import ClosedMessage, ReserveMessage


@dataclass(slots=True)
class Ask:
    """One ask, and the writer's side of it once it closed."""

    router: Peer
    message: ReserveMessage
    closed: ClosedMessage | None = None


class AskBook:
    """The asks of the attempts that live here: as many as the core has leases, and one more in passing."""

    def __init__(self) -> None:
        self._asks: dict[AttemptId, Ask] = {}
        self._attempts: dict[LeaseId, AttemptId] = {}

    def __len__(self) -> int:
        return len(self._asks)

    def hear(self, router: Peer, message: ReserveMessage) -> None:
        """Keep an ask while the core decides on it; a repeated one changes nothing."""
        self._asks.setdefault(message.attempt, Ask(router, message))

    def settle(self, attempt: AttemptId) -> None:
        """The core has decided: without a lease nothing is kept."""
        if attempt not in self._attempts.values():
            self._asks.pop(attempt, None)

    def bind(self, lease: LeaseId, attempt: AttemptId) -> None:
        """The attempt was granted a lease."""
        self._attempts[lease] = attempt

    def of(self, lease: LeaseId) -> Ask | None:
        """The ask for which the lease was granted; None once it has ended."""
        attempt = self._attempts.get(lease)
        return None if attempt is None else self._asks.get(attempt)

    def end(self, attempt: AttemptId) -> Ask | None:
        """Forget the attempt and its lease; returns what was asked."""
        self._attempts = {lease: known for lease, known in self._attempts.items() if known != attempt}
        return self._asks.pop(attempt, None)
