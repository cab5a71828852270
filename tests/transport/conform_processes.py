"""Conformance, fourth part: real processes, killed, stopped and continued in mid-page."""

from pathlib import Path

import pytest
from tests.transport.conform_base import Conformance
from tests.transport.decode_model import LeaseUnderTest
from tests.transport.processes import Child
from tests.transport.rig import (
    DECODE,
    OLD,
    TARGET_PAGES,
    WRITER,
    Pause,
    Rig,
    batch_of,
    completions,
    eventually,
    lost,
    written,
)

from kvfence.protocol.ledger import PageState
from kvfence.protocol.words import Peer
from kvfence.transport import BatchLost, CutResult, Denial, Loss, WriterDenied


class ProcessConformance(Conformance):
    """Writers and receivers that die, and those that only seem to."""

    def test_a_writer_killed_in_mid_page_leaves_a_torn_page_and_its_cut_is_proven(self, rig: Rig):
        model = LeaseUnderTest(rig)
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.say(f"post 0 {model.pages[0]} {model.pages[1]}")
            child.expect("half 0")
            eventually(lambda: rig.pool.payload(model.pages[0])[0] == 1, "half a page arrives")
            model.abort()
            child.kill()
            eventually(lambda: model.ask_cut() is CutResult.PROVEN, "the cut is proven")
        assert model.states() == {PageState.FREE}
        torn = rig.pool.page(model.pages[0])
        assert torn[0] == 1
        assert (rig.pool.trailer(model.pages[0]) == OLD).all()
        assert rig.untouched(model.pages[1])

    def test_a_stopped_writers_bytes_never_land_in_a_page_that_was_freed(self, rig: Rig):
        model = LeaseUnderTest(rig)
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.say(f"post 0 {model.pages[0]} {model.pages[1]}")
            child.expect("half 0")
            eventually(lambda: rig.pool.payload(model.pages[0])[0] == 1, "half a page arrives")
            child.stop()
            model.abort()
            while_stopped = model.ask_cut()
            freed_as = rig.snapshot()
            child.say("go")
            child.go_on()
            eventually(lambda: self._ends(child), "the continued writer's batch is over")
            if while_stopped is CutResult.PROVEN:
                assert rig.snapshot() == freed_as
                return
            # It was not dead: its bytes came after SIGCONT, into pages that are still in quarantine.
            assert rig.page_is(model.pages[0], 1)
            assert model.states() == {PageState.CLOSING}
            eventually(lambda: model.ask_cut() is CutResult.PROVEN, "the cut is proven")

    def test_a_stopped_writer_that_is_killed_is_cut(self, rig: Rig):
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.say("post 0 3 4")
            child.expect("half 0")
            child.stop()
            rig.receiver.cut(WRITER)
            child.kill()
            rig.cut_until_proven()
        assert 4 not in rig.changed_pages()

    def test_a_restarted_writer_is_admitted_beside_its_predecessor_until_that_is_cut(self, rig: Rig):
        newer = Peer(WRITER.node, WRITER.incarnation + 1)
        with Child.writer(self.factory, rig.receiver.address) as child:
            child.stop()
            rig.connect(newer)
            assert set(rig.receiver.writers()) == {WRITER, newer}
            child.kill()
            rig.cut_until_proven()
        assert rig.receiver.writers() == (newer,)

    def test_a_receiver_killed_in_mid_page_loses_the_batch_and_lets_the_writer_go(
        self, rig: Rig, tmp_path: Path
    ):
        pause = Pause()
        child, address = Child.receiver(self.factory, tmp_path / "k", incarnation=DECODE.incarnation)
        with child:
            writer = rig.connect(address=address, pause=pause)
            writer.post(batch_of(range(TARGET_PAGES)))
            writer.post(batch_of([1], batch=1))
            pause.wait()
            child.kill()
            pause.go()
            first, second = completions(writer, 2)
        assert isinstance(first, BatchLost)
        assert isinstance(second, BatchLost)
        assert (first.why, second.why, second.quiet) == (Loss.CONNECTION, Loss.CONNECTION, True)
        eventually(lambda: not writer.alive, "the writer notices")
        assert writer.destroy()

    def test_an_idle_writer_notices_that_its_receiver_was_killed(self, rig: Rig, tmp_path: Path):
        child, address = Child.receiver(self.factory, tmp_path / "k", incarnation=DECODE.incarnation)
        with child:
            writer = rig.connect(address=address)
            child.kill()
            eventually(lambda: not writer.alive, "the writer notices")
        assert rig.wakes >= 1
        writer.post(batch_of([1]))
        assert lost(writer).quiet

    def test_the_next_incarnation_takes_over_where_a_killed_receiver_left_its_files(
        self, tmp_path: Path, rig: Rig
    ):
        run_dir = tmp_path / "k"
        child, old_address = Child.receiver(self.factory, run_dir, incarnation=DECODE.incarnation)
        with child:
            child.kill()
        after = Rig(rig.factory, run_dir, me=Peer(DECODE.node, DECODE.incarnation + 1))
        assert len(list(run_dir.iterdir()) if run_dir.exists() else []) <= 1
        with pytest.raises(WriterDenied) as caught:
            after.connect(target=DECODE)  # it still means the one that died
        assert caught.value.denial is Denial.WRONG_TARGET
        writer = after.connect()
        writer.post(batch_of([1]))
        written(writer)
        assert after.receiver.address != old_address or not old_address.startswith("shm")
        after.close()
        assert not run_dir.exists() or list(run_dir.iterdir()) == []

    def test_a_stopped_receiver_hangs_nobody(self, rig: Rig, tmp_path: Path):
        child, address = Child.receiver(self.factory, tmp_path / "k", incarnation=DECODE.incarnation)
        with child:
            writer = rig.connect(address=address)
            child.stop()
            for number in range(50):
                writer.post(batch_of(range(TARGET_PAGES), batch=number))
            for number in range(50):
                writer.stop_posting(batch_of([0]).lease, number)
            eventually(writer.destroy, "the writer is destroyed though its receiver is stopped")
            assert len(completions(writer, 50)) == 50

    def _ends(self, child: Child) -> bool:
        child.say("poll")
        return child.hear() != "nothing"
