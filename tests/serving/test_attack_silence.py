"""Nodes that were stopped for a while: who may be called silent, and what a router hears when it is back."""

import queue
import time

import pytest
import zmq

from kvfence.protocol.words import AttemptId, End, EndReason, Peer, Role
from kvfence.serving import control
from kvfence.serving.control import ControlPlane, LostPeer
from kvfence.serving.wire import (
    WIRE_VERSION,
    EndedMessage,
    Envelope,
    HelloMessage,
    open_frame,
    seal_frame,
)

SECRET = b"s" * 32
ROUTER, DECODE, PREFILL = Peer("router", 9), Peer("decode-0", 5), Peer("prefill-0", 4)


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


def plane_of(tmp_path, deliver, *, lost_ms=5_000):
    return ControlPlane(
        me=DECODE,
        role=Role.DECODE,
        secret=SECRET,
        bind=f"ipc://{tmp_path}/decode.ctl",
        router_address=f"ipc://{tmp_path}/router.ctl",
        deliver=deliver,
        hello_ms=min(1_000, lost_ms // 2),
        lost_ms=lost_ms,
    )


def hello(sender, role, address):
    return Envelope(WIRE_VERSION, sender, None, 1, HelloMessage(role=role, control_address=address))


@pytest.fixture
def lost(tmp_path, monkeypatch):
    """A plane under a clock of our own: pass seconds, in steps, and get whom it lost."""
    clock = Clock()
    monkeypatch.setattr(control, "time", clock)
    heard = []
    plane = plane_of(tmp_path, lambda inbound: heard.append(inbound) or True)
    plane._accept(hello(PREFILL, Role.PREFILL, f"ipc://{tmp_path}/prefill.ctl"))

    def after(*steps_seconds):
        for step in steps_seconds:
            clock.now += step
            plane._look_for_silence()
        return [inbound.peer for inbound in heard if isinstance(inbound, LostPeer)]

    yield after
    plane.close()


def test_whoever_was_stopped_itself_calls_nobody_silent(lost):
    assert lost(1, 60, 1, 1, 1) == []


def test_silence_counts_again_once_it_listens(lost):
    assert lost(1, 60, 1, 1, 1, 1, 1, 1) == [PREFILL]


def test_silence_is_silence_while_it_listens(lost):
    assert lost(1, 1, 1, 1, 1) == []
    assert lost(1) == [PREFILL]


def test_a_router_that_was_silent_still_hears_how_its_attempts_ended(tmp_path):
    """Else it would wait for each of them until the request's own deadline."""
    lost = queue.SimpleQueue()
    plane = plane_of(
        tmp_path, lambda inbound: (isinstance(inbound, LostPeer) and lost.put(inbound)) or True, lost_ms=200
    )
    plane.announce(HelloMessage(role=Role.DECODE, control_address=plane.address))
    ended = EndedMessage(AttemptId(9, 1, 1), End(EndReason.PEER_LOST))
    context = zmq.Context()
    try:
        router = context.socket(zmq.ROUTER)
        router.setsockopt(zmq.RCVTIMEO, 10_000)
        router.bind(f"ipc://{tmp_path}/router.ctl")
        speaker = context.socket(zmq.DEALER)
        speaker.connect(plane.address)
        plane.start()
        speaker.send(seal_frame(SECRET, hello(ROUTER, Role.ROUTER, f"ipc://{tmp_path}/router.ctl")))
        assert lost.get(timeout=10).peer == ROUTER
        plane.send(ROUTER, ended)
        plane.send(Peer("router", 8), ended)  # another incarnation is none of its business
        until = time.monotonic() + 10
        bodies = []
        while ended not in bodies and time.monotonic() < until:
            envelope = open_frame(SECRET, router.recv_multipart()[-1])
            assert envelope.target in (None, ROUTER)
            bodies.append(envelope.body)
        assert bodies[-1] == ended
    finally:
        plane.close()
        context.destroy(linger=0)
