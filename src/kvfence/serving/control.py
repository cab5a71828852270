"""The control plane of one node: a thread that owns the ZeroMQ sockets, says hello and hears silence.

Each node binds one ROUTER socket and reaches each peer through one DEALER socket; messages go one way
and are never answered on the socket they came by. The thread keeps the hello going while the node
computes, so that a long step is not taken for a death. It delivers what it received, already
authenticated and of a live incarnation, and `LostPeer` for a peer that fell silent.

It decides nothing: what a loss or a newer incarnation means is the cores' business. Messages may be
lost with a peer's process; the protocol is made for that.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

import structlog
import zmq

from kvfence.protocol.errors import OperatorError, PeerError
from kvfence.protocol.words import Peer, Role
from kvfence.serving.bell import Bell
from kvfence.serving.speakers import NODES_MAX, Drop, Speakers
from kvfence.serving.wire import (
    FRAME_BYTES_MAX,
    WIRE_VERSION,
    Body,
    DirectoryMessage,
    Envelope,
    HelloMessage,
    NodeEntry,
    open_frame,
    seal_frame,
)

HELLO_MS = 1_000
LOST_MS = 5_000
INBOX_MESSAGES_MAX = 65_536  # what a node lets wait before it has no room
OUTBOX_MESSAGES_MAX = 65_536
SOCKET_MESSAGES_MAX = 16_384
RECEIVE_BURST_MAX = 256
LAST_WORDS_MS = 500  # what was said before the end may still leave for so long
CLOSE_SECONDS = 5.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Received:
    """A message of a live incarnation, authenticated."""

    sender: Peer
    body: Body


@dataclass(frozen=True, slots=True)
class LostPeer:
    """Nothing was heard of that incarnation for too long."""

    peer: Peer


Inbound = Received | LostPeer


class _Link:
    """One peer: where it is, which incarnation, when it was last heard."""

    def __init__(self, entry: NodeEntry, socket: zmq.Socket[bytes]) -> None:
        self.entry = entry
        self.socket = socket
        self.heard_at: float | None = None


class ControlPlane:
    """Send to and hear from the other nodes. `deliver` is called on the plane's own thread.

    `deliver` answers False when it has no room: the message is dropped and counted. `send`, `announce`,
    `drops` and `close` may be called from any thread. Raises OperatorError when the address cannot be bound.
    """

    def __init__(
        self,
        *,
        me: Peer,
        role: Role,
        secret: bytes,
        bind: str,
        router_address: str | None,
        deliver: Callable[[Inbound], bool],
        hello_ms: int = HELLO_MS,
        lost_ms: int = LOST_MS,
    ) -> None:
        self._me, self._role, self._secret, self._deliver = me, role, secret, deliver
        self._hello_seconds, self._lost_seconds = hello_ms / 1000, lost_ms / 1000
        self._links: dict[str, _Link] = {}
        self._silent_router: Peer | None = None
        self._looked_at = time.monotonic()
        self._speakers = Speakers(me)
        self._number = 0
        self._outbox: deque[tuple[Peer, Body]] = deque()
        self._hello: HelloMessage | None = None
        self._hello_is_due = False
        self._stopping = False
        # Every reason is there from the start, so that a copy never meets a table that grows.
        self._dropped = Counter(dict.fromkeys(Drop, 0))
        self._context = zmq.Context()
        self._bell = Bell()
        self._inbox = self._context.socket(zmq.ROUTER)
        self._inbox.setsockopt(zmq.LINGER, 0)
        self._inbox.setsockopt(zmq.RCVHWM, SOCKET_MESSAGES_MAX)
        self._inbox.setsockopt(zmq.MAXMSGSIZE, FRAME_BYTES_MAX)
        try:
            self._inbox.bind(bind)
        except zmq.ZMQError as error:
            raise OperatorError(
                f"cannot listen for control messages on {bind}: {error}; choose another address or stop "
                "what holds it"
            ) from error
        self.address: str = self._inbox.getsockopt_string(zmq.LAST_ENDPOINT)
        # The router is dialled before it was heard. One socket a peer, for good: the numbers of two
        # sockets would overtake each other and be dropped as seen before.
        self._router_address = router_address
        self._router = None if router_address is None else self._dial(router_address)
        self._thread = threading.Thread(target=self._run, name="control-plane", daemon=True)

    def start(self) -> None:
        """Begin to hear and to say hello. `announce` comes before it."""
        self._thread.start()

    def announce(self, hello: HelloMessage, *, now: bool = False) -> None:
        """What the next hello says; with `now`, say it at once."""
        self._hello = hello
        if now:
            self._hello_is_due = True
            self._bell.ring()

    def send(self, target: Peer, body: Body) -> None:
        """Queue a message. It is dropped, and counted, when no link to that incarnation exists."""
        if len(self._outbox) >= OUTBOX_MESSAGES_MAX:
            self._dropped[Drop.OUTBOX_FULL] += 1
            return
        self._outbox.append((target, body))
        self._bell.ring()

    def nodes(self) -> tuple[NodeEntry, ...]:
        """Every peer that is linked now."""
        return tuple(link.entry for link in list(self._links.values()))

    def note_senseless(self) -> None:
        """Count a message that was delivered and could not be understood."""
        self._dropped[Drop.SENSELESS] += 1

    def drops(self) -> dict[Drop, int]:
        """How many messages were dropped so far, for every reason."""
        return dict(self._dropped)

    def close(self) -> None:
        """Send what is queued, then stop and remove the socket. Called once."""
        self._stopping = True
        self._bell.ring()
        if self._thread.ident is None:
            self._hang_up()
        else:
            self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            log.error("control plane does not end", waited_seconds=CLOSE_SECONDS)
            return  # it still waits for its bell, whose number must not come to mean another file
        self._bell.close()

    # ------------------------------------------------------------ the thread
    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._inbox, zmq.POLLIN)
        poller.register(self._bell.fileno(), zmq.POLLIN)
        next_hello = time.monotonic()
        while not self._stopping:
            wait_seconds = max(0.0, next_hello - time.monotonic())
            poller.poll(int(min(wait_seconds, self._hello_seconds) * 1000 + 1))
            self._bell.hush()
            self._receive()
            if self._hello_is_due or time.monotonic() >= next_hello:
                self._hello_is_due = False
                next_hello = time.monotonic() + self._hello_seconds
                self._say_hello()
                self._look_for_silence()
            self._flush()
        self._flush()
        self._hang_up()

    def _hang_up(self) -> None:
        sockets = {link.socket for link in self._links.values()}
        if self._router is not None:
            sockets.add(self._router)
        for socket in sockets:
            socket.close(linger=LAST_WORDS_MS)
        self._inbox.close(linger=0)
        self._context.term()

    def _dial(self, address: str) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, SOCKET_MESSAGES_MAX)
        socket.connect(address)
        return socket

    def _receive(self) -> None:
        for _ in range(RECEIVE_BURST_MAX):
            try:
                frame = self._inbox.recv_multipart(zmq.NOBLOCK)[-1]
            except zmq.Again:
                return
            try:
                envelope = open_frame(self._secret, frame)
            except PeerError:
                self._dropped[Drop.UNREADABLE] += 1
                continue
            self._accept(envelope)
        self._bell.ring()  # the burst was cut short: look again

    def _accept(self, envelope: Envelope) -> None:
        sender = envelope.sender
        why = self._speakers.fault_of(envelope)
        if why is not None:
            self._dropped[why] += 1
            return
        body = envelope.body
        if isinstance(body, HelloMessage):
            self._link(NodeEntry(sender, body.role, body.control_address, body.pages_address))
        elif isinstance(body, DirectoryMessage):
            for entry in body.nodes:
                if entry.peer.node != self._me.node:
                    self._link(entry)
        link = self._links.get(sender.node)
        if link is not None and link.entry.peer == sender:
            link.heard_at = time.monotonic()
        if not self._deliver(Received(sender, body)):
            self._dropped[Drop.INBOX_FULL] += 1

    def _link(self, entry: NodeEntry) -> None:
        known = self._links.get(entry.peer.node)
        if known is None and len(self._links) >= NODES_MAX:
            self._dropped[Drop.TOO_MANY_NODES] += 1
            return
        if known is not None and known.entry.peer.incarnation > entry.peer.incarnation:
            return
        if known is None or known.entry.peer != entry.peer:
            # The hello goes before whatever is sent to the new incarnation, which drops what strangers say.
            self._hello_is_due = True
        if known is not None and known.entry.control_address == entry.control_address:
            if known.entry.peer != entry.peer:
                known.heard_at = None
            known.entry = entry
            return
        if known is not None:
            self._hang_up_link(known)
        if entry.control_address == self._router_address and self._router is not None:
            self._links[entry.peer.node] = _Link(entry, self._router)
            self._silent_router = None
        else:
            self._links[entry.peer.node] = _Link(entry, self._dial(entry.control_address))

    def _hang_up_link(self, link: _Link) -> None:
        if link.socket is not self._router:
            link.socket.close(linger=0)

    def _say_hello(self) -> None:
        hello = self._hello
        if hello is None:
            return
        links = dict(self._links)
        if self._router is not None and all(link.socket is not self._router for link in links.values()):
            self._post(self._router, None, hello)
        entries = self.nodes()
        for name, link in links.items():
            self._post(link.socket, None, hello)
            if self._role is Role.ROUTER:
                others = tuple(entry for entry in entries if entry.peer.node != name)
                self._post(link.socket, None, DirectoryMessage(others))

    def _look_for_silence(self) -> None:
        now = time.monotonic()
        # While this process was stopped it could hear nobody: that is no silence of theirs.
        missed_seconds = max(0.0, now - self._looked_at - self._hello_seconds)
        self._looked_at = now
        for name, link in list(self._links.items()):
            if link.heard_at is None:
                link.heard_at = now  # it has as long to speak for the first time
                continue
            link.heard_at = min(now, link.heard_at + missed_seconds)
            if now - link.heard_at > self._lost_seconds:
                self._lose(name, link)

    def _lose(self, name: str, link: _Link) -> None:
        if link.socket is self._router:
            self._silent_router = link.entry.peer
        self._hang_up_link(link)
        del self._links[name]
        self._deliver(LostPeer(link.entry.peer))

    def _flush(self) -> None:
        while self._outbox:
            target, body = self._outbox.popleft()
            link = self._links.get(target.node)
            if link is not None and link.entry.peer == target:
                self._post(link.socket, target, body)
            elif self._router is not None and target == self._silent_router:
                # It may only have been stopped, and waits for the ends that its loss has caused.
                self._post(self._router, target, body)
            else:
                self._dropped[Drop.UNKNOWN_TARGET] += 1

    def _post(self, socket: zmq.Socket[bytes], target: Peer | None, body: Body) -> None:
        self._number += 1
        frame = seal_frame(self._secret, Envelope(WIRE_VERSION, self._me, target, self._number, body))
        try:
            socket.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            self._dropped[Drop.SOCKET_FULL] += 1
