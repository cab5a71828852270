"""Cuts under way: what a decode node does between AskCut and its proof.

The transport is asked again until it can prove the cut. A writer that was told to let go and does not,
within a grace, is killed by the launcher; on another machine that is the operator's part. Time proves
nothing here either: a cut stays pending until it is proven.
"""

import math
import time
from collections.abc import Callable

import structlog

from kvfence.protocol.events import Cut, CutUnknown
from kvfence.protocol.words import Peer
from kvfence.transport import CutResult, PageReceiver

POLL_SECONDS = 0.05
GRACE_SECONDS = 1.0  # for a healthy writer to unmap by itself

log = structlog.get_logger()


class Cutter:
    """Asks a receiver for cuts until each is answered. `kill` asks the launcher, once an incarnation."""

    def __init__(
        self,
        receiver: PageReceiver,
        kill: Callable[[Peer], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._receiver, self._kill, self._clock = receiver, kill, clock
        self._since: dict[Peer, float] = {}
        self._killed: set[Peer] = set()
        self._asked_at: float | None = None

    def ask(self, peer: Peer) -> None:
        """Begin the cut of an incarnation; answered by `poll`."""
        self._since.setdefault(peer, self._clock())
        self._asked_at = None

    def wait_seconds(self) -> float:
        """When to poll next; infinity when nothing is under way."""
        return POLL_SECONDS if self._since else math.inf

    def poll(self) -> list[Cut | CutUnknown]:
        """What has been answered since."""
        now = self._clock()
        is_early = self._asked_at is not None and now - self._asked_at < POLL_SECONDS
        if not self._since or is_early:
            return []
        self._asked_at = now
        answers: list[Cut | CutUnknown] = []
        for peer, since in list(self._since.items()):
            result = self._receiver.cut(peer)
            if result is CutResult.PENDING:
                self._lose_patience(peer, now - since)
                continue
            del self._since[peer]
            self._killed.discard(peer)
            log.warning("writer cut", peer=peer.node, proof=result.value)
            answers.append(Cut(peer) if result is CutResult.PROVEN else CutUnknown(peer))
        return answers

    def _lose_patience(self, peer: Peer, waited_seconds: float) -> None:
        if waited_seconds >= GRACE_SECONDS and peer not in self._killed:
            self._killed.add(peer)
            log.warning("writer does not let go: asking for its end", peer=peer.node)
            self._kill(peer)
