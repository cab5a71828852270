"""The loop that a prefill and a decode node share: hear, keep timers, compute, say hello.

One thread runs it. While there is something to compute it looks into its inbox between steps; else it
sleeps until a message, a transport's signal or a timer wakes it. Nothing polls when nothing happens.
"""

import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from kvfence.protocol import PageLedger, PageState
from kvfence.protocol.errors import PeerError
from kvfence.protocol.events import DrainRequested, Hello, PeerLost
from kvfence.protocol.words import IntegrityReason, LeaseId, Peer, RefusalCode, Role
from kvfence.serving.control import ControlPlane, Inbound, LostPeer, Received
from kvfence.serving.driver import Core, CoreDriver
from kvfence.serving.stats import NodeStats
from kvfence.serving.wire import Body, DirectoryMessage, HelloMessage

INBOX_BURST_MAX = 256
IDLE_WAIT_SECONDS_MAX = 5.0

PAGE_STATE_NAMES = {
    PageState.FREE: "free",
    PageState.RESERVED: "leased",
    PageState.OPEN: "open",
    PageState.SEALED: "sealed",
    PageState.CLOSING: "quarantined",
    PageState.POISONED: "poisoned",
    PageState.CACHED: "cached",
}

log = structlog.get_logger()


class _Signal:
    """What wakes the loop besides messages."""

    WAKE = "wake"
    DRAIN = "drain"
    STOP = "stop"


class NodeLoop(ABC):
    """Runs one core. Subclasses translate messages, carry out commands and compute.

    `wake`, `drain`, `stop` and `deliver` may be called from any thread; the rest from the loop's.
    """

    def __init__(self, *, me: Peer, core: Core) -> None:
        self.me = me
        self.driver = CoreDriver(core, self.carry_out)
        self.stats = NodeStats()
        self.stats.begin("refusals_total", reasons=RefusalCode)
        self.stats.begin("integrity_failures_total", reasons=IntegrityReason)
        self.plane: ControlPlane | None = None
        self.draining = False
        self._inbox: queue.SimpleQueue[Inbound | str] = queue.SimpleQueue()
        self._stopping = False
        self._hello_at = 0.0
        self._quarantine = QuarantineClock()

    # ------------------------------------------------------------ from any thread
    def deliver(self, inbound: Inbound) -> None:
        """A message from the control plane."""
        self._inbox.put(inbound)

    def wake(self) -> None:
        """Something is to be polled."""
        self._inbox.put(_Signal.WAKE)

    def drain(self) -> None:
        """Refuse what is new."""
        self._inbox.put(_Signal.DRAIN)

    def stop(self) -> None:
        """Leave the loop after the present step."""
        self._inbox.put(_Signal.STOP)

    # ------------------------------------------------------------ what a node does
    @abstractmethod
    def carry_out(self, command: Any) -> None:
        """One command of the core."""

    @abstractmethod
    def on_message(self, sender: Peer, body: Body) -> None:
        """One message other than a hello or a directory. Raises PeerError for one that makes no sense."""

    @abstractmethod
    def compute(self) -> bool:
        """One step, if there is anything to compute; whether there was."""

    @abstractmethod
    def poll(self) -> None:
        """Look at the transport and at whatever else is waited for."""

    @abstractmethod
    def hello(self) -> HelloMessage:
        """This node as it is now."""

    @abstractmethod
    def on_peer(self, peer: Peer, role: Role, pages_address: str | None, *, heard: bool) -> None:
        """A peer said hello (`heard`), which the core was told, or the router says that it is there."""

    # ------------------------------------------------------------ the loop
    def run(self) -> None:
        """Until `stop`. An exception that escapes ends the process, which is how a node fails closed."""
        computed = False
        while not self._stopping:
            self._hear(block=not computed)
            self.poll()
            self.driver.fire_due()
            computed = self.compute()
            self._refresh_hello()

    def send(self, peer: Peer, body: Body) -> None:
        """Over the control plane."""
        if self.plane is not None:
            self.plane.send(peer, body)

    def announce_now(self) -> None:
        """Tell the peers about a change of room or of figures without waiting for the next second."""
        if self.plane is not None:
            self.plane.announce(self.hello(), now=True)

    def wait_seconds(self) -> float:
        """How long the loop may sleep when there is nothing to compute."""
        due = self.driver.next_due_seconds()
        return IDLE_WAIT_SECONDS_MAX if due is None else min(due, IDLE_WAIT_SECONDS_MAX)

    def _hear(self, *, block: bool) -> None:
        wait = self._first_wait(block=block)
        for _ in range(INBOX_BURST_MAX):
            try:
                item = self._inbox.get(timeout=wait) if wait else self._inbox.get_nowait()
            except queue.Empty:
                return
            wait = None
            self._take(item)

    def show_pages(self, ledger: PageLedger) -> None:
        """Figures of the pool's pages by state, under the names of the glossary."""
        for state, name in PAGE_STATE_NAMES.items():
            self.stats.set("pool_pages", ledger.count(state), state=name)

    def show_leases(self, counts: Mapping[str, int], closing: Iterable[LeaseId]) -> None:
        """Figures of the core's leases by state, and the age of the oldest that is in quarantine."""
        for state, count in counts.items():
            self.stats.set("leases", count, state=state)
        self.stats.set("quarantine_oldest_seconds", self._quarantine.update(set(closing)))

    def _first_wait(self, *, block: bool) -> float | None:
        seconds = self.wait_seconds() if block else 0.0
        return seconds if seconds > 0 else None

    def _take(self, item: Inbound | str) -> None:
        if isinstance(item, Received):
            self._on_received(item)
        elif isinstance(item, LostPeer):
            log.warning("peer lost", peer=item.peer.node)
            self.driver.feed(PeerLost(item.peer))
        elif item == _Signal.DRAIN:
            self.draining = True
            self.driver.feed(DrainRequested())
        elif item == _Signal.STOP:
            self._stopping = True

    def _on_received(self, received: Received) -> None:
        sender, body = received.sender, received.body
        if isinstance(body, HelloMessage):
            self.driver.feed(Hello(sender, body.role, body.pool_tokens, body.free_pages, body.draining))
            self.on_peer(sender, body.role, body.pages_address, heard=True)
        elif isinstance(body, DirectoryMessage):
            for entry in body.nodes:
                self.on_peer(entry.peer, entry.role, entry.pages_address, heard=False)
        else:
            try:
                self.on_message(sender, body)
            except PeerError as error:
                self.stats.add("dropped_messages_total", reason="senseless")
                log.warning("message dropped", peer=sender.node, why=str(error))

    def _refresh_hello(self) -> None:
        now = time.monotonic()
        if self.plane is not None and now >= self._hello_at:
            self._hello_at = now + 0.5
            self.plane.announce(self.hello())


class QuarantineClock:
    """Ages of pages in CLOSING, which the ledger, having no clock, cannot know."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[LeaseId, float] = {}

    def update(self, leases: set[LeaseId]) -> float:
        """The leases in quarantine now; seconds since the oldest of them entered it."""
        now = self._clock()
        self._since = {lease: self._since.get(lease, now) for lease in leases}
        return max((now - since for since in self._since.values()), default=0.0)
