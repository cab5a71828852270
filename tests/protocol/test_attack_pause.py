"""A decode node that is paused for longer than its silence may last, and goes on as it was."""

import pytest
from tests.protocol.stages import computing, sending

from kvfence.protocol import commands, events
from kvfence.protocol.words import Failed, Failure, LeaseId, Role


@pytest.mark.parametrize("stage", [computing, sending])
def test_what_was_said_while_decode_was_lost_is_said_again_when_it_is_back(stage):
    """Its lease is still reserved there, and nobody else will tell it before the lease's deadline."""
    rig = stage()
    decode, lease = rig.peer("d0"), rig.lease("p0").lease
    rig.prefill.step(events.PeerLost(decode))  # what it says now is lost with the link
    for batch in sorted(rig.prefill.leases[lease].in_flight if lease in rig.prefill.leases else ()):
        rig.prefill.step(events.WriteCompleted(lease, batch))
    rig.prefill.step(events.ConnectionDestroyed(decode))
    said = rig.prefill.step(events.Hello(decode, Role.DECODE, 64, 16))
    assert commands.SendClosed(decode, lease, Failed(Failure.PEER_LOST)) in said
    assert rig.prefill.step(events.Hello(decode, Role.DECODE, 64, 16)) == []


def test_what_nothing_may_be_said_of_stays_unsaid():
    rig = sending()
    decode, lease = rig.peer("d0"), rig.lease("p0").lease
    rig.prefill.step(events.PeerLost(decode))
    rig.prefill.step(events.ConnectionDestroyed(decode))  # with writes in flight
    assert rig.prefill.step(events.Hello(decode, Role.DECODE, 64, 16)) == []
    said = rig.prefill.step(events.Reconnected(decode))
    assert said == [
        commands.SendClosed(decode, LeaseId(decode.incarnation, lease.sequence), Failed(Failure.TRANSFER))
    ]
