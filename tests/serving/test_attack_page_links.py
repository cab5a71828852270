"""A decode node that is lost while no page connection to it stands, and comes back as it was."""

from kvfence.protocol import NoPrefix, PageLedger, PrefillConfig, PrefillCore, events
from kvfence.protocol.decisions import Decisions
from kvfence.protocol.words import AttemptId, LeaseId, PageRef, Peer, Role
from kvfence.serving.page_links import PageLinks
from kvfence.transport import TransportError

ME, ROUTER, DECODE = Peer("prefill-0", 7), Peer("router", 3), Peer("decode-0", 5)


class Unreachable:
    name = "unreachable"

    def connect(self, **_):
        raise TransportError("nobody answers")


def unreachable_links(wakes):
    return PageLinks(
        transport=Unreachable(), me=ME, secret=b"s" * 32, pool=None, wake=lambda: wakes.append(1)
    )


def test_a_connection_that_never_stood_is_destroyed_at_once():
    links = unreachable_links(wakes := [])
    assert not links.connect(DECODE, "nowhere")
    links.destroy(DECODE)
    assert wakes  # the loop looks again without waiting for anything else
    assert links.poll() == ([], [DECODE])
    assert links.poll() == ([], [])


def test_a_decode_node_that_was_lost_without_a_connection_is_written_to_when_it_is_back():
    links = unreachable_links([])
    core = PrefillCore(ME, PrefillConfig(page_bytes=1024), Decisions(), PageLedger(8), NoPrefix())
    core.step(events.Hello(ROUTER, Role.ROUTER))
    core.step(events.Hello(DECODE, Role.DECODE, 128, 8))
    for command in core.step(events.PeerLost(DECODE)):
        links.destroy(command.peer)
    for peer in links.poll()[1]:
        core.step(events.ConnectionDestroyed(peer))
    core.step(events.Hello(DECODE, Role.DECODE, 128, 8))
    core.step(
        events.Prefill(
            ROUTER, AttemptId(3, 1, 1), DECODE, LeaseId(5, 1), (PageRef(0, 1),), (11, 12), "tenant"
        )
    )
    assert LeaseId(5, 1) in core.leases
