"""What joins the nodes of the seam: control messages, page writers, cuts. All of it moves when told to.

Rules: control messages are first in, first out on each link. A page is written in two halves, its trailer
with the second; a writer stops only between pages. What a connection had under way when it was given up may
still land (`Loose`) until its writer is cut by the receiver or connects again, as the transport's contract
allows. A cut is proven when no writer is in the midst of a page or stopped as a whole.

It has no threads, no sockets and no clock; frames, secrets and handshakes are tested elsewhere.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass

import numpy as np
from tests.serving.seam.oracle import LAYOUT

from kvfence.protocol.words import LeaseId, Peer, Role
from kvfence.serving.control import Received
from kvfence.serving.wire import HelloMessage
from kvfence.transport import BatchLost, BatchWritten, CutResult, TransportError, WriterDenied
from kvfence.transport.base import Denial, Loss

HALF_BYTES = LAYOUT.payload_bytes // 2
LATE_SHARE = 0.6  # of the batches under way when a connection goes


class Bus:
    """Control messages on their way. `world` gives the random hand and the nodes that hear."""

    def __init__(self, world):
        self._world = world
        self._links = OrderedDict()

    def post(self, sender, target, body):
        """Behind what is on that link."""
        self._links.setdefault((sender, target), deque()).append(body)

    def drop(self, sender, target):
        """What is on the link is lost."""
        self._links.pop((sender, target), None)

    def deliver_some(self):
        """A few messages of one link; those to a node that is stopped wait, those to nobody are lost."""
        ready = [link for link, queue in self._links.items() if queue and not self._world.is_stopped(link[1])]
        if not ready:
            return
        sender, target = link = self._world.rng.choice(ready)
        queue = self._links[link]
        for _ in range(min(len(queue), self._world.rng.randint(1, 4))):
            body = queue.popleft()
            if not isinstance(body, HelloMessage):
                self._world.note(f"{named(sender)} → {named(target)}: {_shown(body)}")
            self._world.hear(target, Received(sender, body))


def named(peer):
    """Short, for the history."""
    return f"{peer.node}/{peer.incarnation}"


def _shown(body):
    about = getattr(body, "lease", None) or getattr(body, "attempt", None)
    numbers = "" if about is None else " " + "/".join(str(getattr(about, name)) for name in about.__slots__)
    end = getattr(body, "end", None)
    return f"{type(body).__name__}{numbers}{'' if end is None else ' ' + end.reason.value}"


class Plane:
    """A node's control plane: onto the bus, except to peers that were lost and not heard of since."""

    address = "seam"

    def __init__(self, world, me, role):
        self._world, self._me, self._role = world, me, role
        self._silent = set()

    def send(self, peer, body):
        """Unless the link is down."""
        if peer not in self._silent:
            self._world.bus.post(self._me, peer, body)

    def announce(self, hello, *, now=False):
        """A node tells of itself in the world's own time."""

    def drops(self):
        """Nothing is counted here."""
        return {}

    def note_senseless(self):
        """Nodes of one version understand each other."""
        raise AssertionError(f"{self._me} was sent what makes no sense to it")

    def hang_up(self, peer):
        """The peer was silent too long. A silent router still hears how attempts ended."""
        if self._role is Role.ROUTER or peer.node != "router":
            self._silent.add(peer)
            self._world.bus.drop(self._me, peer)

    def answer(self, peer):
        """The peer was heard again."""
        self._silent.discard(peer)


@dataclass(frozen=True)
class Loose:
    """A page on its way that belongs to no connection any more."""

    writer: Peer
    target: Peer
    lease: LeaseId
    page: int
    payload: bytes
    trailer: bytes


class Writer:
    """A page connection (`PageWriter`), and the thread behind it as `work`."""

    def __init__(self, world, me, peer, source):
        self._world, self.me, self.peer, self._source = world, me, peer, source
        self.alive, self.gone, self.stopped, self.in_page = True, False, False, False
        self._queue, self._done, self._stops, self._page = deque(), [], set(), 0

    def post(self, batch):
        """Behind the others."""
        if self.alive:
            self._queue.append(batch)
        else:
            self._done.append(BatchLost(batch.lease, batch.batch, Loss.CONNECTION, quiet=True))

    def stop_posting(self, lease, batch):
        """Before its next page."""
        self._stops.add((lease, batch))

    def poll(self):
        """What was done since."""
        done, self._done = self._done, []
        return done

    def destroy(self):
        """False in the midst of a page."""
        self.alive = False
        if self.in_page:
            return False
        self.give_up(Loss.DESTROYED, may_be_late=True)
        return True

    def give_up(self, why, *, may_be_late):
        """The connection is gone; with `may_be_late` a page of each batch may still land."""
        while self._queue:
            batch = self._queue.popleft()
            is_late = may_be_late and self._world.rng.random() < LATE_SHARE
            if is_late:
                self._world.loose.append(self._loose(batch, self._page))
            self._done.append(BatchLost(batch.lease, batch.batch, why, quiet=not is_late))
            self._page = 0
        self.gone, self.in_page = True, False

    def work(self):
        """Go on by half a page. Once begun, a page is finished whatever was said meanwhile.

        In a weather that tears no pages the first half is only the decision to write, and all of the page
        lands with the second.
        """
        if not self._queue or self.stopped or self.gone:
            return
        batch = self._queue[0]
        if self.in_page:
            self._finish_page(batch)
        elif not self.alive or (batch.lease, batch.batch) in self._stops:
            self._queue.popleft()
            self._page = 0
            why = Loss.STOPPED if self.alive else Loss.CONNECTION
            self._done.append(BatchLost(batch.lease, batch.batch, why, quiet=True))
        else:
            self.in_page = True
            if self._world.weather.tears_pages:
                self._world.land(self._loose(batch, self._page), first_half=True)

    def _finish_page(self, batch):
        landing = self._loose(batch, self._page)
        if not self._world.weather.tears_pages:
            self._world.land(landing, first_half=True)
        self._world.land(landing, first_half=False)
        self.in_page, self._page = False, self._page + 1
        if self._page == len(batch.sources):
            self._queue.popleft()
            self._page = 0
            self._done.append(BatchWritten(batch.lease, batch.batch, 1, 0.0))

    def _loose(self, batch, index):
        payload = self._source.payload(batch.sources[index]).tobytes()
        page, trailer = batch.targets[index].page, bytes(batch.trailer(index))
        return Loose(self.me, self.peer, batch.lease, page, payload, trailer)


def put(pool, landing, *, first_half):
    """Half of a page's bytes into its target."""
    page = pool.page(landing.page)
    if first_half:
        page[:HALF_BYTES] = np.frombuffer(landing.payload[:HALF_BYTES], np.uint8)
    else:
        page[HALF_BYTES : LAYOUT.payload_bytes] = np.frombuffer(landing.payload[HALF_BYTES:], np.uint8)
        page[LAYOUT.payload_bytes :] = np.frombuffer(landing.trailer, np.uint8)


class Receiver:
    """The decode side's word on its writers. `barred` holds the newest incarnation cut of each node."""

    def __init__(self, world, me):
        self._world, self._me = world, me
        self.barred = {}

    def cut(self, peer):
        """For good; proven once nothing of it is under way."""
        self.barred[peer.node] = max(self.barred.get(peer.node, 0), peer.incarnation)
        held = [w for w in self._world.writers if w.me == peer and w.peer == self._me and not w.gone]
        for writer in held:
            writer.alive = False
        if any(writer.stopped or writer.in_page for writer in held):
            return CutResult.PENDING
        for writer in held:
            writer.give_up(Loss.CONNECTION, may_be_late=False)
        self._world.forget_loose(peer, self._me)
        return CutResult.PROVEN


class SeamTransport:
    """The factory of writers that a prefill node is given."""

    name = "seam"

    def __init__(self, world):
        self._world = world

    def connect(self, *, address, me, target, secret, source_pool, wake):
        """Unless the target is gone, has cut us, or has an earlier connection of ours that is not quiet."""
        receiver = self._world.receivers.get(target)
        if receiver is None or self._world.is_stopped(target):
            raise TransportError(f"{target} is not there")
        if me.incarnation <= receiver.barred.get(me.node, 0):
            raise WriterDenied(Denial.STALE_WRITER, "cut")
        if any(w.me == me and w.peer == target and not w.gone for w in self._world.writers):
            raise WriterDenied(Denial.NOT_QUIET, "an earlier connection")
        self._world.forget_loose(me, target)
        writer = Writer(self._world, me, target, source_pool)
        self._world.writers.append(writer)
        return writer
