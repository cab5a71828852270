"""The vocabulary, and the choice of a transport by name."""

import pytest
from tests.transport.rig import LEASE, batch_of

from kvfence.protocol.errors import InvariantError, OperatorError
from kvfence.protocol.words import PageRef
from kvfence.transport import TRANSPORTS, WriteBatch, make_transport


def test_a_batch_hands_out_each_pages_trailer():
    batch = WriteBatch(LEASE, 0, (1, 2), (PageRef(3, 1), PageRef(4, 1)), b"a" * 64 + b"b" * 64)
    assert bytes(batch.trailer(0)) == b"a" * 64
    assert bytes(batch.trailer(1)) == b"b" * 64


@pytest.mark.parametrize(
    ("sources", "targets", "trailer_bytes"), [((), (), 0), ((1,), (), 64), ((1,), (PageRef(1, 1),), 63)]
)
def test_a_batch_that_does_not_fit_together_cannot_be_made(
    sources: tuple[int, ...], targets: tuple[PageRef, ...], trailer_bytes: int
):
    assert batch_of([1])
    with pytest.raises(InvariantError):
        WriteBatch(LEASE, 0, sources, targets, b"x" * trailer_bytes)


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport_is_made_by_its_name(name: str):
    assert make_transport(name).name == name


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(OperatorError, match="did you mean shm"):
        make_transport("shmem")
    with pytest.raises(OperatorError, match="choose one of shm, tcp"):
        make_transport("pigeon")
