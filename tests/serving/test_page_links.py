"""Page connections: one for each decode incarnation, torn down until nothing reads our pages."""

import math

import pytest
from tests.kv.pools import make_pool
from tests.serving.link_fakes import FakeTransport

from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import LeaseId, PageRef, Peer
from kvfence.serving.page_links import LINKS_MAX, PageLinks
from kvfence.transport import TRAILER_BYTES, Denial, TransportError, WriteBatch

DECODE = Peer("decode-0", 7)
BATCH = WriteBatch(LeaseId(7, 1), 0, (0,), (PageRef(3, 1),), bytes(TRAILER_BYTES))


@pytest.fixture
def transport():
    return FakeTransport()


@pytest.fixture
def links(transport):
    return PageLinks(
        transport=transport, me=Peer("prefill-0", 5), secret=b"s" * 32, pool=make_pool(2), wake=lambda: None
    )


def test_a_connection_is_made_once_for_each_incarnation(links, transport):
    assert links.connect(DECODE, "there")
    assert not links.connect(DECODE, "there")
    assert links.connect(Peer("decode-0", 8), "there")
    assert [writer.peer.incarnation for writer in transport.writers] == [7, 8]
    assert len(links) == 2


def test_a_peer_that_cannot_be_reached_is_tried_again_when_asked(links, transport):
    transport.fault = TransportError("nobody there")
    assert not links.connect(DECODE, "there")
    transport.fault = None
    assert links.connect(DECODE, "there")


@pytest.mark.parametrize("denial", [denial for denial in Denial if denial is not Denial.STALE_WRITER])
def test_a_refusal_that_may_pass_is_no_end(links, transport, denial):
    transport.deny(denial)
    assert not links.connect(DECODE, "there")


def test_an_incarnation_that_was_cut_ends_its_node(links, transport):
    transport.deny(Denial.STALE_WRITER)
    with pytest.raises(OperatorError, match="start it again"):
        links.connect(DECODE, "there")


def test_connections_are_bounded(links):
    assert all(links.connect(Peer("decode-0", number), "there") for number in range(LINKS_MAX))
    assert not links.connect(Peer("decode-0", LINKS_MAX), "there")


def test_a_batch_goes_to_its_peer_or_nowhere(links, transport):
    assert not links.post(DECODE, BATCH)
    links.connect(DECODE, "there")
    assert links.post(DECODE, BATCH)
    assert transport.writers[0].posted == [BATCH]


def test_completions_of_every_connection_are_taken_once(links, transport):
    links.connect(DECODE, "there")
    links.connect(Peer("decode-1", 9), "there")
    for writer in transport.writers:
        writer.write(BATCH)
    completions, gone = links.poll()
    assert (len(completions), gone) == (2, [])
    assert links.poll() == ([], [])


def test_a_connection_is_gone_only_when_nothing_reads_our_pages(links, transport):
    links.connect(DECODE, "there")
    transport.writers[0].slow_ends = 1
    assert links.wait_seconds() == math.inf
    links.destroy(DECODE)
    assert links.wait_seconds() < 1, "it is looked at soon"
    assert links.poll() == ([], [])
    assert not links.connect(DECODE, "there"), "no second connection beside one that may still read"
    assert links.poll() == ([], [DECODE])
    assert links.connect(DECODE, "there")


def test_a_lost_connection_gives_its_completions_before_it_is_gone(links, transport):
    links.connect(DECODE, "there")
    transport.writers[0].lose(BATCH, quiet=False)
    transport.writers[0].alive = False
    completions, gone = links.poll()
    assert [completion.quiet for completion in completions] == [False]
    assert gone == [DECODE]
    assert not links.post(DECODE, BATCH)


def test_posting_is_stopped_on_whichever_connection_has_the_batch(links, transport):
    links.connect(DECODE, "there")
    transport.writers[0].slow_ends = 9
    links.destroy(DECODE)
    links.connect(Peer("decode-1", 9), "there")
    links.stop_posting(BATCH.lease, BATCH.batch)
    assert [writer.stopped for writer in transport.writers] == [[(BATCH.lease, 0)]] * 2


def test_close_tears_everything_down(links, transport):
    links.connect(DECODE, "there")
    links.close()
    assert not transport.writers[0].alive
