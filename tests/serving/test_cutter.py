"""Cuts under way: asked for until proven, and a writer that does not let go is killed once."""

import math

import pytest

from kvfence.protocol.events import Cut, CutUnknown
from kvfence.protocol.words import Peer
from kvfence.serving.cutter import GRACE_SECONDS, POLL_SECONDS, Cutter
from kvfence.transport import CutResult

WRITER, OTHER = Peer("prefill-0", 5), Peer("prefill-1", 6)


class Receiver:
    """Answers what the test says; PENDING where it says nothing."""

    def __init__(self):
        self.answers = {}
        self.asked = []

    def cut(self, peer):
        self.asked.append(peer)
        return self.answers.get(peer, CutResult.PENDING)


class Rig:
    def __init__(self):
        self.receiver, self.killed, self.now = Receiver(), [], 100.0
        self.cutter = Cutter(self.receiver, self.killed.append, clock=lambda: self.now)

    def later(self, seconds=POLL_SECONDS):
        self.now += seconds
        return self.cutter.poll()


@pytest.fixture
def rig():
    return Rig()


def test_nothing_is_asked_while_nothing_is_under_way(rig):
    assert rig.cutter.poll() == []
    assert rig.cutter.wait_seconds() == math.inf
    assert rig.receiver.asked == []


@pytest.mark.parametrize(
    ("result", "event"), [(CutResult.PROVEN, Cut(WRITER)), (CutResult.UNKNOWN, CutUnknown(WRITER))]
)
def test_an_answer_is_an_event_once(rig, result, event):
    rig.receiver.answers[WRITER] = result
    rig.cutter.ask(WRITER)
    assert rig.cutter.poll() == [event]
    assert rig.later() == []
    assert rig.cutter.wait_seconds() == math.inf


def test_a_pending_cut_is_asked_for_again_but_not_all_the_time(rig):
    rig.cutter.ask(WRITER)
    assert rig.cutter.poll() == []
    assert rig.later(POLL_SECONDS / 2) == []
    assert len(rig.receiver.asked) == 1
    rig.receiver.answers[WRITER] = CutResult.PROVEN
    assert rig.later() == [Cut(WRITER)]
    assert rig.cutter.wait_seconds() == math.inf


def test_a_cut_that_was_just_asked_for_does_not_wait_for_the_next_look(rig):
    rig.cutter.ask(WRITER)
    rig.cutter.poll()
    rig.cutter.ask(OTHER)
    rig.cutter.poll()
    assert rig.receiver.asked == [WRITER, WRITER, OTHER]


def test_a_writer_has_a_moment_to_let_go_by_itself(rig):
    rig.cutter.ask(WRITER)
    rig.later(GRACE_SECONDS - POLL_SECONDS)
    assert rig.killed == []


def test_a_writer_that_does_not_let_go_is_killed_once_and_its_cut_still_needs_proof(rig):
    rig.cutter.ask(WRITER)
    assert rig.later(GRACE_SECONDS) == []
    assert rig.later(100 * GRACE_SECONDS) == [], "time proves nothing"
    assert rig.killed == [WRITER]
    rig.receiver.answers[WRITER] = CutResult.PROVEN
    assert rig.later() == [Cut(WRITER)]


def test_asking_again_gives_no_more_patience(rig):
    rig.cutter.ask(WRITER)
    rig.now += GRACE_SECONDS
    rig.cutter.ask(WRITER)
    rig.cutter.poll()
    assert rig.killed == [WRITER]
