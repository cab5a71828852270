"""Conformance, second part: who may write, and what a receiver leaves behind."""

import pytest
from tests.transport.conform_base import Conformance, load_factory
from tests.transport.rig import (
    DECODE,
    OTHER_LAYOUT,
    SECRET,
    WRITER,
    Pause,
    Rig,
    batch_of,
    eventually,
    fresh_secret,
    lost,
    written,
)

from kvfence.kv.pool import Pool
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.words import Peer
from kvfence.transport import CutResult, Denial, Loss, TransportError, WriterDenied

OLDER = Peer(WRITER.node, WRITER.incarnation - 1)
NEWER = Peer(WRITER.node, WRITER.incarnation + 1)


class AdmissionConformance(Conformance):
    """What `listen`, `connect`, `writers` and `close` do."""

    def test_a_writer_is_listed_from_its_registration_to_its_proven_cut(self, rig: Rig):
        assert rig.receiver.writers() == ()
        writer = rig.connect()
        assert writer.peer == DECODE
        assert rig.receiver.writers() == (WRITER,)
        eventually(writer.destroy, "the writer is destroyed")
        assert rig.receiver.writers() == (WRITER,)  # gone is not cut
        rig.cut_until_proven()
        assert rig.receiver.writers() == ()

    def test_the_wrong_secret_registers_nobody(self, rig: Rig):
        with pytest.raises(TransportError, match="secret"):
            rig.connect(secret=fresh_secret())
        assert rig.receiver.writers() == ()

    @pytest.mark.parametrize("target", [Peer(DECODE.node, 49), Peer(DECODE.node, 51), Peer("decode-1", 50)])
    def test_a_writer_that_means_another_incarnation_is_denied(self, rig: Rig, target: Peer):
        self._denied(rig, Denial.WRONG_TARGET, target=target)

    def test_a_writer_with_another_page_layout_is_denied(self, rig: Rig):
        other = Pool.create(OTHER_LAYOUT, 4)
        self._denied(rig, Denial.LAYOUT, source_pool=other)
        other.close()

    def test_an_older_incarnation_is_denied_once_a_newer_one_was_seen(self, rig: Rig):
        rig.connect(WRITER)
        self._denied(rig, Denial.STALE_WRITER, me=OLDER)
        assert rig.receiver.writers() == (WRITER,)

    def test_a_newer_incarnation_replaces_nothing(self, rig: Rig):
        older = rig.connect(OLDER)
        newer = rig.connect(NEWER)
        assert set(rig.receiver.writers()) == {OLDER, NEWER}
        older.post(batch_of([5]))  # still able to write: only its cut takes that away
        written(older)
        rig.cut_until_proven(OLDER)
        assert rig.receiver.writers() == (NEWER,)
        newer.post(batch_of([6]))
        written(newer)

    def test_a_cut_incarnation_never_comes_back_but_a_newer_one_may(self, rig: Rig):
        rig.connect()
        rig.cut_until_proven()
        self._denied(rig, Denial.STALE_WRITER)
        writer = rig.connect(NEWER)
        writer.post(batch_of([5]))
        written(writer)

    def test_a_cut_reaches_an_incarnation_that_was_never_seen(self, rig: Rig):
        assert rig.receiver.cut(WRITER) is CutResult.PROVEN
        self._denied(rig, Denial.STALE_WRITER)
        self._denied(rig, Denial.STALE_WRITER, me=OLDER)
        rig.connect(NEWER)

    def test_cutting_an_older_incarnation_leaves_the_newer_one_alone(self, rig: Rig):
        writer = rig.connect(NEWER)
        assert rig.receiver.cut(WRITER) is CutResult.PROVEN
        writer.post(batch_of([5]))
        written(writer)

    def test_after_destroy_the_same_incarnation_connects_again(self, rig: Rig):
        first = rig.connect()
        eventually(first.destroy, "the first connection is destroyed")
        again = rig.connect()
        again.post(batch_of([5]))
        written(again)

    def test_connecting_again_never_leaves_an_earlier_connection_that_may_still_write(self, rig: Rig):
        pause = Pause()
        rig.connect(pause=pause).post(batch_of([5]))
        pause.wait()
        try:
            rig.connect()
        except WriterDenied as denied:
            assert denied.denial is Denial.NOT_QUIET
            return
        before = rig.snapshot()
        pause.go()
        eventually(rig.writers[0].destroy, "the first connection is destroyed")
        assert rig.snapshot() == before

    def test_close_ends_the_connections_and_takes_nobody_any_more(self, rig: Rig):
        writer = rig.connect()
        rig.receiver.close()
        eventually(lambda: not writer.alive, "the writer notices")
        writer.post(batch_of([5]))
        gone = lost(writer)
        assert (gone.why, gone.quiet) == (Loss.CONNECTION, True)
        with pytest.raises(TransportError, match="reached"):
            rig.connect(NEWER)
        assert rig.changed_pages() == set()
        rig.receiver.close()

    def test_after_close_nothing_is_proven_that_is_not_so(self, rig: Rig):
        pause = Pause()
        rig.connect(pause=pause).post(batch_of([5]))
        pause.wait()
        rig.receiver.close()
        result = rig.receiver.cut(WRITER)
        before = rig.snapshot()
        pause.go()
        eventually(rig.writers[0].destroy, "the writer is destroyed")
        assert result in (CutResult.PROVEN, CutResult.UNKNOWN)
        assert result is CutResult.UNKNOWN or rig.snapshot() == before

    def test_an_address_of_another_transport_is_the_operators_mistake(self, rig: Rig):
        with pytest.raises(OperatorError, match="--transport"):
            rig.connect(address="pigeon:coop/7")

    def test_nobody_at_the_address_is_said_with_the_address(self, rig: Rig):
        rig.receiver.close()
        with pytest.raises(TransportError, match=DECODE.node):
            rig.connect()

    def test_a_guessable_secret_is_refused_at_both_ends(self, rig: Rig):
        with pytest.raises(OperatorError, match="secret"):
            rig.connect(secret=b"short")
        transport = load_factory(self.factory)()
        with pytest.raises(OperatorError, match="secret"):
            transport.listen(pool=rig.pool, me=DECODE, secret=b"", run_dir=rig.run_dir, wake=lambda: None)

    def _denied(self, rig: Rig, why: Denial, **changed: object) -> None:
        before = rig.receiver.writers()
        assert len(SECRET) >= 16
        with pytest.raises(WriterDenied) as caught:
            rig.connect(**changed)
        assert caught.value.denial is why
        assert len(str(caught.value)) > 20
        assert rig.receiver.writers() == before
