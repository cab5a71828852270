"""The loop of a node: what wakes it, what it hears, what it says of itself."""

import pytest
from tests.serving.node_fakes import FakePlane, hello_from, turn

from kvfence.protocol import PageLedger, PageState
from kvfence.protocol.errors import InvariantError, PeerError
from kvfence.protocol.events import Hello, PeerLost
from kvfence.protocol.words import AttemptId, LeaseId, Peer, Role
from kvfence.serving import node_loop
from kvfence.serving.control import LostPeer, Received
from kvfence.serving.node_loop import PAGE_STATE_NAMES, NodeLoop, NodeParts, QuarantineClock
from kvfence.serving.wire import AbortMessage, DirectoryMessage, NodeEntry

ME, OTHER = Peer("decode-0", 7), Peer("prefill-0", 5)
ABORT = Received(OTHER, AbortMessage(AttemptId(3, 1, 1)))


class FakeCore:
    """Remembers its events."""

    def __init__(self):
        self.events = []
        self.lease_counts = {"running": 2}
        self.closing_leases = []
        self.counts = {"stray": 4}

    def step(self, event):
        self.events.append(event)
        return []


class Node(NodeLoop):
    """A node that computes as often as the test says."""

    ROLE = Role.DECODE
    free_pages = 3

    def __init__(self, core):
        ledger = PageLedger(4)
        super().__init__(ME, NodeParts(core=core, ledger=ledger, facts={"version": "0"}, pool_tokens=16))
        self.ledger, self.core = ledger, core
        self.messages, self.peers, self.steps_left, self.polls = [], [], 0, 0

    def carry_out(self, command):
        raise AssertionError(f"the fake core commands nothing, and not {command}")

    def on_message(self, sender, body):
        if self.messages is None:
            raise PeerError("no sense in it")
        self.messages.append((sender, body))

    def compute(self):
        self.steps_left -= 1
        return self.steps_left >= 0

    def poll(self):
        self.polls += 1

    def queue_lengths(self):
        return {"rows": 5}

    def on_peer(self, peer, role, pages_address, *, heard):
        self.peers.append((peer, role, pages_address, heard))


@pytest.fixture
def node():
    node = Node(FakeCore())
    node.attach(FakePlane())
    return node


def test_messages_go_to_the_role_and_hellos_to_the_core_first(node):
    hello = hello_from(OTHER, Role.PREFILL, pool_tokens=8, pages_address="there")
    turn(node, hello, ABORT)
    assert node.messages == [(OTHER, ABORT.body)]
    assert node.core.events == [Hello(OTHER, Role.PREFILL, 8)]
    assert node.peers == [(OTHER, Role.PREFILL, "there", True)]


def test_a_directory_is_hearsay(node):
    entry = NodeEntry(OTHER, Role.PREFILL, "a", None)
    turn(node, Received(Peer("router", 3), DirectoryMessage((entry,))))
    assert node.peers == [(OTHER, Role.PREFILL, None, False)]
    assert node.core.events == []


def test_a_loss_is_the_cores_to_judge(node):
    turn(node, LostPeer(OTHER))
    assert node.core.events == [PeerLost(OTHER)]


def test_what_makes_no_sense_is_counted_and_the_rest_is_heard(node):
    node.messages = None
    turn(node, ABORT, ABORT)
    assert node.plane.senseless == 2


def test_the_inbox_is_bounded_and_a_loss_is_always_taken(node, monkeypatch):
    monkeypatch.setattr(node_loop, "INBOX_MESSAGES_MAX", 2)
    assert [node.deliver(ABORT) for _ in range(3)] == [True, True, False]
    node.wake()
    assert node.deliver(LostPeer(OTHER))
    turn(node)
    assert len(node.messages) == 2
    assert node.core.events == [PeerLost(OTHER)]
    assert node.deliver(ABORT)


def test_a_node_sleeps_only_when_it_had_nothing_to_compute(node):
    assert node._first_wait(block=False) is None
    assert node._first_wait(block=True) == node_loop.IDLE_WAIT_SECONDS_MAX


def test_a_wake_lets_the_loop_poll_and_a_stop_ends_it(node):
    node.wake()
    node.stop()
    node.run()
    assert node.polls == 1


def test_hello_has_every_figure_under_its_name(node):
    node.ledger.lease(2, 1)
    hello = node.hello()
    assert (hello.role, hello.pool_tokens, hello.free_pages, hello.pages_address) == (
        Role.DECODE,
        16,
        3,
        None,
    )
    assert hello.control_address == FakePlane.address
    assert hello.facts == {"version": "0"}
    for key, value in {
        "pool_pages|state=free": 2,
        "pool_pages|state=leased": 2,
        "leases|state=running": 2,
        "core_events_total|what=stray": 4,
        "queue_length|queue=rows": 5,
        "quarantine_oldest_seconds": 0,
        "refusals_total|reason=busy": 0,
        "integrity_failures_total|reason=seal_torn": 0,
        "dropped_messages_total|reason=inbox_full": 0,
    }.items():
        assert hello.stats[key] == value, key


def test_every_page_state_has_a_name():
    assert set(PAGE_STATE_NAMES) == set(PageState)
    assert len(set(PAGE_STATE_NAMES.values())) == len(PageState)


def test_a_node_says_hello_as_it_goes(node):
    turn(node)
    assert len(node.plane.announced) == 1
    node.announce_now()
    assert len(node.plane.announced) == 2


def test_a_node_speaks_only_after_its_plane_was_attached():
    node = Node(FakeCore())
    with pytest.raises(InvariantError, match="attached"):
        node.send(OTHER, ABORT.body)


def test_quarantine_ages_from_when_a_lease_entered_it():
    now = [10.0]
    clock = QuarantineClock(lambda: now[0])
    old, young = LeaseId(7, 1), LeaseId(7, 2)
    assert clock.update(set()) == 0
    assert clock.update({old}) == 0
    now[0] = 12.0
    assert clock.update({old, young}) == 2
    now[0] = 15.0
    assert clock.update({young}) == 3, "the oldest came home"
    assert clock.update(set()) == 0
    assert clock.update({old}) == 0, "a lease that comes back is young again"
