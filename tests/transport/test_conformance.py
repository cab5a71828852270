"""The suite itself: each of its central checks fires on a transport that breaks the rule it stands for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transport.conformance import TransportConformance
from tests.transport.rig import Rig

from kvfence.protocol.words import Peer
from kvfence.transport import BatchWritten, CutResult, ShmTransport, WriteBatch
from kvfence.transport.shm_receiver import ShmReceiver
from kvfence.transport.shm_writer import ShmLink


class Suite(TransportConformance):
    """Called directly, so that pytest does not collect it."""

    __test__ = False
    factory = "kvfence.transport.shm:ShmTransport"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(ShmTransport, tmp_path / "r")
    yield rig
    rig.close()


def test_a_cut_by_word_alone_is_caught(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    def says_so(receiver: ShmReceiver, peer: Peer) -> CutResult:
        return CutResult.PROVEN

    monkeypatch.setattr(ShmReceiver, "cut", says_so)
    with pytest.raises(AssertionError):
        Suite().test_a_late_write_after_an_abort_finds_its_pages_in_quarantine(rig)


def test_a_cut_that_stops_nobody_is_caught_in_mid_page(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ShmReceiver, "cut", lambda receiver, peer: CutResult.PROVEN)
    with pytest.raises(AssertionError):
        Suite().test_no_byte_lands_after_a_proven_cut_in_mid_page(rig)


def test_a_trailer_that_comes_first_is_caught(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    honest = ShmLink._store

    def trailer_first(link: ShmLink, batch: WriteBatch, index: int) -> None:
        page = link._mapping.page(batch.targets[index].page)
        np.copyto(page[link._mapping.payload_bytes :], np.frombuffer(batch.trailer(index), np.uint8))
        del page
        honest(link, batch, index)

    monkeypatch.setattr(ShmLink, "_store", trailer_first)
    with pytest.raises(AssertionError):
        Suite().test_the_trailer_is_written_after_the_payload(rig)


def test_a_completion_without_its_bytes_is_caught(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    def says_written(link: ShmLink, batch: WriteBatch, verdict: Any) -> BatchWritten:
        return BatchWritten(batch.lease, batch.batch, 2 * 4160, 0.0)

    monkeypatch.setattr(ShmLink, "write", says_written)
    with pytest.raises(AssertionError):
        Suite().test_pages_arrive_whole_with_their_staged_trailers_and_nothing_else_changes(rig)


def test_a_deadline_that_is_not_kept_is_caught(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    honest = ShmLink.write
    monkeypatch.setattr(
        ShmLink, "write", lambda link, batch, verdict: honest(link, batch, lambda batch: None)
    )
    with pytest.raises(AssertionError):
        Suite().test_a_batch_that_outlives_its_deadline_posts_no_further_page(rig)
