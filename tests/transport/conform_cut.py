"""Conformance, third part: what a cut proves, and late writes that must find their pages in quarantine."""

from tests.transport.conform_base import Conformance
from tests.transport.decode_model import LeaseUnderTest
from tests.transport.rig import (
    WRITER,
    Pause,
    Rig,
    batch_of,
    completions,
    eventually,
)

from kvfence.protocol.ledger import PageState
from kvfence.protocol.words import Peer
from kvfence.transport import BatchLost, CutResult


class CutConformance(Conformance):
    """`cut` in each of its answers."""

    def test_the_cut_of_an_idle_writer_comes_to_be_proven(self, rig: Rig):
        writer = rig.connect()
        rig.cut_until_proven()
        eventually(lambda: not writer.alive, "the writer notices")

    def test_a_proven_cut_stays_proven(self, rig: Rig):
        rig.connect()
        rig.cut_until_proven()
        assert rig.receiver.cut(WRITER) is CutResult.PROVEN

    def test_the_receiver_is_woken_when_a_writer_comes_and_when_it_goes(self, rig: Rig):
        writer = rig.connect()
        eventually(lambda: rig.receiver_wakes >= 1, "woken by the arrival")
        eventually(writer.destroy, "the writer is destroyed")
        eventually(lambda: rig.receiver_wakes >= 2, "woken by the departure")

    def test_no_byte_lands_after_a_proven_cut_in_mid_page(self, rig: Rig):
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of([5, 6]))
        pause.wait()
        before = rig.snapshot()
        early = rig.receiver.cut(WRITER)
        if early is CutResult.PROVEN:
            before = rig.snapshot()
        pause.go()
        rig.cut_until_proven()
        proven = rig.snapshot()
        (gone,) = completions(writer, 1)
        eventually(writer.destroy, "the writer is destroyed")
        assert isinstance(gone, BatchLost)
        assert rig.snapshot() == proven
        assert early is not CutResult.PROVEN or proven == before
        assert 6 not in rig.changed_pages()

    def test_a_late_write_after_an_abort_finds_its_pages_in_quarantine(self, rig: Rig):
        model = LeaseUnderTest(rig)
        pause = Pause()
        writer = rig.connect(pause=pause)
        writer.post(batch_of(model.pages))
        pause.wait()
        model.abort()
        # The writer is in mid-page and asleep. Until the cut is proven the pages are nobody's to lease.
        early = model.ask_cut()
        half = rig.snapshot()
        if early is not CutResult.PROVEN:
            assert model.states() == {PageState.CLOSING}
        pause.go()
        completions(writer, 1)
        if early is CutResult.PROVEN:
            assert rig.snapshot() == half  # freed, and rightly: nothing came any more
            return
        assert model.states() == {PageState.CLOSING}  # whatever came, came into quarantine
        eventually(lambda: model.ask_cut() is CutResult.PROVEN, "the cut is proven")
        assert model.states() == {PageState.FREE}

    def test_an_abort_alone_or_anothers_cut_frees_nothing(self, rig: Rig):
        model = LeaseUnderTest(rig)
        assert model.states() == {PageState.RESERVED}
        model.abort()
        assert model.ask_cut(Peer("nobody", 1)) is CutResult.PROVEN
        assert model.states() == {PageState.CLOSING}
        assert model.ask_cut() is CutResult.PROVEN  # it never came, and cannot come any more
        assert model.states() == {PageState.FREE}
