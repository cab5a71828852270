"""The control plane over real sockets: authentication, incarnations, silence."""

import queue
import time

import pytest
import zmq

from kvfence.protocol.words import AttemptId, Peer, Role
from kvfence.serving.control import ControlPlane, LostPeer, Received
from kvfence.serving.speakers import Drop
from kvfence.serving.wire import (
    WIRE_VERSION,
    AbortMessage,
    DirectoryMessage,
    Envelope,
    HelloMessage,
    seal_frame,
)

SECRET = b"s" * 32
ROUTER = Peer("router", 10)


class Node:
    """A plane with its deliveries."""

    def __init__(self, tmp_path, peer, role, *, secret=SECRET, hello_ms=20, lost_ms=None, name=None):
        self.peer = peer
        self.inbox: queue.Queue = queue.Queue()
        self.has_room = True
        self.router_address = f"ipc://{tmp_path}/router.ctl"
        self.plane = ControlPlane(
            me=peer,
            role=role,
            secret=secret,
            bind=f"ipc://{tmp_path}/{name or peer.node}.ctl",
            router_address=None if role is Role.ROUTER else self.router_address,
            deliver=self.deliver,
            hello_ms=hello_ms,
            lost_ms=lost_ms or max(5_000, 3 * hello_ms),
        )
        self.plane.announce(HelloMessage(role=role, control_address=self.plane.address))
        self.plane.start()

    def deliver(self, inbound):
        if not self.has_room:
            return False
        self.inbox.put(inbound)
        return True

    def wait_for(self, want, seconds=10.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                item = self.inbox.get(timeout=0.05)
            except queue.Empty:
                continue
            if want(item):
                return item
        raise AssertionError("the awaited message never came")

    def wait_all(self, *wants) -> list[int]:
        """Wait until each of these came, in any order; return at which place each came first."""
        places: dict[int, int] = {}
        seen = 0
        while len(places) < len(wants):
            item = self.wait_for(lambda item: True)
            for index, want in enumerate(wants):
                if want(item):
                    places.setdefault(index, seen)
            seen += 1
        return [places[index] for index in range(len(wants))]


@pytest.fixture
def nodes():
    made = []
    yield made
    for node in made:
        node.plane.close()


def hello_of(peer):
    return lambda item: (
        isinstance(item, Received) and item.sender == peer and isinstance(item.body, HelloMessage)
    )


def tells_of(peer):
    return lambda item: (
        isinstance(item, Received)
        and isinstance(item.body, DirectoryMessage)
        and peer in [entry.peer for entry in item.body.nodes]
    )


def abort_of(request):
    return lambda item: (
        isinstance(item, Received)
        and isinstance(item.body, AbortMessage)
        and item.body.attempt.request == request
    )


def test_nodes_meet_through_the_router_and_then_talk_directly(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    nodes.append(prefill := Node(tmp_path, Peer("prefill-0", 5), Role.PREFILL))
    nodes.append(decode := Node(tmp_path, Peer("decode-0", 6), Role.DECODE))
    prefill.wait_for(hello_of(decode.peer))
    decode.wait_for(hello_of(prefill.peer))
    prefill.wait_for(lambda item: isinstance(item.body, DirectoryMessage))
    prefill.plane.send(decode.peer, AbortMessage(AttemptId(1, 7, 1)))
    assert decode.wait_for(abort_of(7)).sender == prefill.peer
    decode.plane.send(router.peer, AbortMessage(AttemptId(1, 8, 1)))
    assert router.wait_for(abort_of(8)).sender == decode.peer


def test_messages_arrive_in_the_order_of_sending_among_hellos(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    nodes.append(decode := Node(tmp_path, Peer("decode-0", 6), Role.DECODE))
    decode.wait_for(hello_of(router.peer))
    for request in range(500):
        decode.plane.send(router.peer, AbortMessage(AttemptId(1, request, 1)))
    seen = []
    while len(seen) < 500:
        item = router.wait_for(
            lambda item: isinstance(item, Received) and isinstance(item.body, AbortMessage)
        )
        seen.append(item.body.attempt.request)
    assert seen == list(range(500))
    assert not any(router.plane.drops().values())


def test_another_secret_is_not_heard(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    nodes.append(Node(tmp_path, Peer("prefill-0", 5), Role.PREFILL, secret=b"x" * 32))
    assert drops(router, Drop.UNREADABLE) > 0
    assert router.plane.nodes() == ()


def send_raw(tmp_path, frames):
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.connect(f"ipc://{tmp_path}/router.ctl")
        for frame in frames:
            socket.send(frame)
        socket.close(linger=2000)


def drops(router, reason):
    until = time.monotonic() + 10
    while not router.plane.drops()[reason] and time.monotonic() < until:
        time.sleep(0.01)
    return router.plane.drops()[reason]


def envelope(sender, target, number, version=WIRE_VERSION):
    return seal_frame(
        SECRET, Envelope(version, sender, target, number, AbortMessage(AttemptId(1, number, 1)))
    )


def test_older_incarnations_and_replays_are_dropped(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    new, old = Peer("decode-0", 6), Peer("decode-0", 5)
    send_raw(tmp_path, [envelope(new, ROUTER, 3), envelope(new, ROUTER, 3), envelope(old, ROUTER, 9)])
    assert drops(router, Drop.SEEN_BEFORE) == 1
    assert drops(router, Drop.OLDER_INCARNATION) == 1
    router.wait_for(abort_of(3))
    assert router.inbox.empty()


def test_a_message_for_an_older_incarnation_of_the_receiver_is_dropped(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    send_raw(
        tmp_path,
        [envelope(Peer("decode-0", 6), Peer("router", 9), 1), envelope(Peer("decode-0", 6), None, 2)],
    )
    assert drops(router, Drop.FOR_ANOTHER_INCARNATION) == 1
    router.wait_for(abort_of(2))


def test_another_version_is_dropped(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    send_raw(tmp_path, [envelope(Peer("decode-0", 6), ROUTER, 1, version=WIRE_VERSION + 1)])
    assert drops(router, Drop.UNREADABLE) == 1


def test_silence_is_a_loss_and_a_living_peer_is_none(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER, lost_ms=600))
    nodes.append(living := Node(tmp_path, Peer("prefill-0", 5), Role.PREFILL))
    dying = Node(tmp_path, Peer("decode-0", 6), Role.DECODE)
    router.wait_for(hello_of(dying.peer))
    dying.plane.close()
    lost = router.wait_for(lambda item: isinstance(item, LostPeer))
    assert lost.peer == dying.peer
    assert [entry.peer for entry in router.plane.nodes()] == [living.peer]


def test_a_restarted_node_is_heard_under_its_new_incarnation(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    first = Node(tmp_path, Peer("decode-0", 6), Role.DECODE)
    router.wait_for(hello_of(first.peer))
    first.plane.close()
    nodes.append(second := Node(tmp_path, Peer("decode-0", 7), Role.DECODE))
    router.wait_for(hello_of(second.peer))
    router.plane.send(first.peer, AbortMessage(AttemptId(1, 1, 1)))
    assert drops(router, Drop.UNKNOWN_TARGET) == 1
    router.plane.send(second.peer, AbortMessage(AttemptId(1, 2, 1)))
    second.wait_for(abort_of(2))


def test_a_new_peer_hears_hello_before_anything_else(tmp_path, nodes):
    """What strangers say is dropped, and hellos are far apart: a first message must not come before."""
    router = Node(tmp_path, ROUTER, Role.ROUTER, hello_ms=60_000, lost_ms=180_000)
    nodes.append(router)
    nodes.append(first := Node(tmp_path, Peer("prefill-0", 5), Role.PREFILL, hello_ms=60_000))
    router.wait_for(hello_of(first.peer))
    nodes.append(decode := Node(tmp_path, Peer("decode-0", 6), Role.DECODE, hello_ms=60_000))
    router.wait_for(hello_of(decode.peer))
    router.plane.send(decode.peer, AbortMessage(AttemptId(1, 1, 1)))
    router.plane.send(first.peer, AbortMessage(AttemptId(1, 1, 1)))
    abort, hello, _ = decode.wait_all(abort_of(1), hello_of(router.peer), hello_of(first.peer))
    assert hello < abort
    # The others are told of it before a message can name it.
    abort, told, _ = first.wait_all(abort_of(1), tells_of(decode.peer), hello_of(decode.peer))
    assert told < abort


def test_a_message_for_which_the_node_has_no_room_is_counted(tmp_path, nodes):
    nodes.append(router := Node(tmp_path, ROUTER, Role.ROUTER))
    router.has_room = False
    send_raw(tmp_path, [envelope(Peer("decode-0", 6), ROUTER, 1)])
    assert drops(router, Drop.INBOX_FULL) == 1
    assert router.inbox.empty()


def test_a_plane_that_is_closed_may_still_be_told_to_send(tmp_path):
    node = Node(tmp_path, ROUTER, Role.ROUTER)
    node.plane.close()
    node.plane.send(Peer("decode-0", 6), AbortMessage(AttemptId(1, 1, 1)))


def test_a_plane_that_was_never_started_can_be_closed(tmp_path):
    plane = ControlPlane(
        me=ROUTER,
        role=Role.ROUTER,
        secret=SECRET,
        bind=f"ipc://{tmp_path}/router.ctl",
        router_address=None,
        deliver=lambda _: True,
    )
    plane.close()
