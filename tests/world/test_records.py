"""Records of a world are frozen; a write knows where it stands."""

from tests.world.play import DECODE

from kvfence.protocol.words import LeaseId, PageRef
from kvfence.world import Job, Write


def write(**fields):
    pages = (PageRef(0, 1), PageRef(1, 1))
    return Write(DECODE, 1, pages, pages, (), **fields)


def test_a_write_has_landed_after_its_last_page():
    assert not write(at=1).has_landed and write(at=2).has_landed


def test_a_stopped_write_halts_between_pages_and_never_after_the_last():
    assert write(at=1, is_stopped=True).halts
    assert not write(at=1, part=1, is_stopped=True).halts
    assert not write(at=2, is_stopped=True).halts
    assert not write(at=1).halts


def test_a_prompt_grows_by_chunks():
    job = Job(1, 5, (PageRef(0, 1),), 1, 0, 2)
    assert job.computed_to(4).computed == 4 and job.computed == 2
    assert LeaseId(1, 1) < LeaseId(1, 2)
