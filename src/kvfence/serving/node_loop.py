"""The loop that a prefill and a decode node share: hear, keep timers, compute, say hello.

One thread runs it. While there is something to compute it looks into its inbox between steps; else it
sleeps until a message, a transport's signal or a timer wakes it. Nothing polls when nothing happens.

It knows neither pages nor models: what a command or a message means is the subclass's to say.
"""

import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import ClassVar, Protocol

import structlog

from kvfence.protocol import PageLedger, PageState
from kvfence.protocol.errors import PeerError, unreachable
from kvfence.protocol.events import Hello, PeerLost
from kvfence.protocol.vocabulary import Command
from kvfence.protocol.words import IntegrityReason, LeaseId, Peer, RefusalCode, Role
from kvfence.serving.control import INBOX_MESSAGES_MAX, ControlPlane, Inbound, LostPeer, Received
from kvfence.serving.driver import Core, CoreDriver
from kvfence.serving.stats import NodeStats
from kvfence.serving.trace import NodeTrace
from kvfence.serving.trace_lines import Traced
from kvfence.serving.wire import Body, DirectoryMessage, HelloMessage

INBOX_BURST_MAX = 256
IDLE_WAIT_SECONDS_MAX = 5.0
HELLO_REFRESH_SECONDS = 0.5

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


Facts = dict[str, str | int | float | bool | None]


@unique
class _Signal(Enum):
    """What wakes the loop besides messages."""

    WAKE = "wake"
    STOP = "stop"


class LeaseCore(Core, Traced, Protocol):
    """A core that has leases, and what it says of them."""

    @property
    def lease_counts(self) -> Mapping[str, int]:
        """How many leases are in each state, by the state's name."""

    @property
    def closing_leases(self) -> Iterable[LeaseId]:
        """Leases whose pages are in quarantine."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What the core counted: refused, ignored, stray, illegal, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeParts:
    """What both kinds of node are made of. `pool_tokens` is what may be promised to requests."""

    core: LeaseCore
    ledger: PageLedger
    facts: Facts
    pool_tokens: int


class NodeLoop(ABC):
    """Runs one core. Subclasses translate messages, carry out commands and compute.

    `wake`, `stop` and `deliver` may be called from any thread, `stop` from a signal handler too; the rest
    from the loop's. `attach` comes before the first event.
    """

    ROLE: ClassVar[Role]

    def __init__(self, me: Peer, parts: NodeParts) -> None:
        self.me = me
        self.driver = CoreDriver(parts.core, self.carry_out)
        self.stats = NodeStats()
        self.stats.begin("refusals_total", reasons=RefusalCode)
        self.stats.begin("integrity_failures_total", reasons=IntegrityReason)
        self._node_parts = parts
        self._attached: ControlPlane | None = None
        # Of Python's queues this one alone may be filled by a signal handler; its bound is kept by `deliver`.
        self._inbox: queue.SimpleQueue[Inbound | _Signal] = queue.SimpleQueue()
        self._stopping = False
        self._hello_at = 0.0
        self._quarantine = QuarantineClock()

    def attach(self, plane: ControlPlane) -> None:
        """Speak over this control plane; its `deliver` is ours."""
        self._attached = plane

    @property
    def plane(self) -> ControlPlane:
        """The control plane that was attached."""
        if self._attached is None:
            unreachable("a node speaks only after its control plane was attached")
        return self._attached

    def keep_trace(self, trace: NodeTrace, **facts: object) -> None:
        """Let this trace know of every step. Before the first event."""
        parts = self._node_parts
        self.driver.observer = trace.watch(parts.core, self.ROLE, parts.ledger, **facts)

    # ------------------------------------------------------------ from any thread
    def deliver(self, inbound: Inbound) -> bool:
        """Take what the control plane heard; False when there is no room for a message.

        A loss is always taken: there are no more of them than peers, and nothing repeats it.
        """
        if isinstance(inbound, Received) and self._inbox.qsize() >= INBOX_MESSAGES_MAX:
            return False
        self._inbox.put(inbound)
        return True

    def wake(self) -> None:
        """Something is to be polled. A full inbox keeps the loop awake by itself."""
        if self._inbox.qsize() < INBOX_MESSAGES_MAX:
            self._inbox.put(_Signal.WAKE)

    def stop(self) -> None:
        """Leave the loop after the present step."""
        self._inbox.put(_Signal.STOP)

    # ------------------------------------------------------------ what a node does
    @abstractmethod
    def carry_out(self, command: Command) -> None:
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
    def queue_lengths(self) -> Mapping[str, int]:
        """What waits to be computed, by queue."""

    @property
    @abstractmethod
    def free_pages(self) -> int:
        """Pages that a request could be given now: a hint for the router."""

    @property
    def pages_address(self) -> str | None:
        """Where writers reach the pool; None where nobody writes to it from outside."""
        return None

    @property
    def facts(self) -> Facts:
        """What `/server_info` shows of this node."""
        return self._node_parts.facts

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
        self.plane.send(peer, body)

    def announce_now(self) -> None:
        """Tell the peers about a change of room or of figures without waiting for the next second."""
        self.plane.announce(self.hello(), now=True)

    def hello(self) -> HelloMessage:
        """This node as it is now."""
        self._refresh_figures()
        return HelloMessage(
            role=self.ROLE,
            control_address=self.plane.address,
            pages_address=self.pages_address,
            pool_tokens=self._node_parts.pool_tokens,
            free_pages=self.free_pages,
            facts=self.facts,
            stats=self.stats.snapshot(),
        )

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

    def _refresh_figures(self) -> None:
        """Bring up to date what is not counted as it happens, under the names of the glossary."""
        core, ledger, stats = self._node_parts.core, self._node_parts.ledger, self.stats
        stats.set("pool_tokens", self._node_parts.pool_tokens)
        for state, name in PAGE_STATE_NAMES.items():
            stats.set("pool_pages", ledger.count(state), state=name)
        for lease_state, count in core.lease_counts.items():
            stats.set("leases", count, state=lease_state)
        stats.set("quarantine_oldest_seconds", self._quarantine.update(set(core.closing_leases)))
        for name, length in self.queue_lengths().items():
            stats.set("queue_length", length, queue=name)
        for what, count in core.counts.items():
            stats.set("core_events_total", count, what=what)
        for drop, count in self.plane.drops().items():
            stats.set("dropped_messages_total", count, reason=drop.value)

    def _first_wait(self, *, block: bool) -> float | None:
        seconds = self.wait_seconds() if block else 0.0
        return seconds if seconds > 0 else None

    def _take(self, item: Inbound | _Signal) -> None:
        if isinstance(item, Received):
            self._on_received(item)
        elif isinstance(item, LostPeer):
            log.warning("peer lost", peer=item.peer.node)
            self.driver.feed(PeerLost(item.peer))
        elif item is _Signal.STOP:
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
                self.plane.note_senseless()
                log.warning("message dropped", peer=sender.node, why=str(error))

    def _refresh_hello(self) -> None:
        now = time.monotonic()
        if now >= self._hello_at:
            self._hello_at = now + HELLO_REFRESH_SECONDS
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
