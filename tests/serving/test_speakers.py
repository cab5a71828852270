"""Who is heard on the control plane: the newest incarnation, each message once."""

import pytest

from kvfence.protocol.words import AttemptId, Peer
from kvfence.serving.speakers import NODES_MAX, Drop, Speakers
from kvfence.serving.wire import WIRE_VERSION, AbortMessage, Envelope

ME = Peer("router", 10)
BODY = AbortMessage(AttemptId(1, 1, 1))


def said(incarnation=5, number=1, *, node="decode-0", target=ME):
    return Envelope(WIRE_VERSION, Peer(node, incarnation), target, number, BODY)


@pytest.fixture
def speakers():
    return Speakers(ME)


def test_messages_in_their_order_are_heard(speakers):
    assert [speakers.fault_of(said(number=number)) for number in (1, 2, 7)] == [None] * 3


def test_what_was_heard_or_overtaken_is_not_heard_again(speakers):
    assert speakers.fault_of(said(number=4)) is None
    assert speakers.fault_of(said(number=4)) is Drop.SEEN_BEFORE
    assert speakers.fault_of(said(number=3)) is Drop.SEEN_BEFORE


def test_a_newer_incarnation_counts_anew_and_silences_the_older(speakers):
    assert speakers.fault_of(said(incarnation=5, number=9)) is None
    assert speakers.fault_of(said(incarnation=6, number=1)) is None
    assert speakers.fault_of(said(incarnation=5, number=10)) is Drop.OLDER_INCARNATION


def test_one_nodes_numbers_say_nothing_about_anothers(speakers):
    assert speakers.fault_of(said(number=9)) is None
    assert speakers.fault_of(said(number=1, node="prefill-0")) is None


@pytest.mark.parametrize(
    ("target", "fault"), [(Peer("router", 9), Drop.FOR_ANOTHER_INCARNATION), (None, None)]
)
def test_a_message_is_for_this_incarnation_or_for_whoever_hears_it(speakers, target, fault):
    assert speakers.fault_of(said(target=target)) is fault


def test_a_message_under_our_own_name_is_not_heard(speakers):
    assert speakers.fault_of(said(node=ME.node)) is Drop.OWN_NAME


def test_a_dropped_message_leaves_no_trace(speakers):
    assert speakers.fault_of(said(number=9, target=Peer("router", 9))) is Drop.FOR_ANOTHER_INCARNATION
    assert speakers.fault_of(said(number=1)) is None


def test_the_table_of_nodes_is_bounded(speakers):
    for number in range(NODES_MAX):
        assert speakers.fault_of(said(node=f"node-{number}")) is None
    assert speakers.fault_of(said(node="one-more")) is Drop.TOO_MANY_NODES
    assert speakers.fault_of(said(node="node-0", number=2)) is None
