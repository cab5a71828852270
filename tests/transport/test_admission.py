"""Admission: order of incarnations, one registration each, and cuts, without a socket."""

import pytest

from kvfence.protocol.words import Peer
from kvfence.transport import CutResult, Denial, WriterDenied
from kvfence.transport.admission import NODES_MAX, Admission, Claim

ME = Peer("decode-0", 5)
LAYOUT = b"layout"


class FakeSession:
    """Quiet when told so."""

    def __init__(self, result: CutResult = CutResult.PENDING) -> None:
        self.result = result
        self.asked = 0
        self.ended = False

    def quiesce(self) -> CutResult:
        self.asked += 1
        return self.result

    def end(self) -> None:
        self.ended = True


def claim(incarnation: int, *, node: str = "prefill-0", target: Peer = ME, layout: bytes = LAYOUT) -> Claim:
    return Claim(writer=Peer(node, incarnation), target=target, layout=layout)


def denial(admission: Admission[FakeSession], what: Claim) -> Denial:
    def never() -> FakeSession:
        raise AssertionError("a denied writer gets no session")

    with pytest.raises(WriterDenied) as caught:
        admission.admit(what, never)
    return caught.value.denial


@pytest.fixture
def admission() -> Admission[FakeSession]:
    return Admission(ME, LAYOUT)


def test_older_is_denied_equal_and_newer_are_not(admission: Admission[FakeSession]):
    admission.admit(claim(7), lambda: FakeSession(CutResult.PROVEN))
    assert denial(admission, claim(6)) is Denial.STALE_WRITER
    admission.admit(claim(7), FakeSession)
    admission.admit(claim(8), FakeSession)
    assert set(admission.writers()) == {Peer("prefill-0", 7), Peer("prefill-0", 8)}


def test_nodes_are_independent(admission: Admission[FakeSession]):
    admission.admit(claim(7), FakeSession)
    admission.admit(claim(1, node="prefill-1"), FakeSession)
    assert len(admission.writers()) == 2


def test_a_second_registration_waits_for_the_first_to_be_quiet(admission: Admission[FakeSession]):
    first = FakeSession()
    admission.admit(claim(7), lambda: first)
    assert denial(admission, claim(7)) is Denial.NOT_QUIET
    first.result = CutResult.UNKNOWN
    assert denial(admission, claim(7)) is Denial.NOT_QUIET
    first.result = CutResult.PROVEN
    admission.admit(claim(7), FakeSession)


@pytest.mark.parametrize("result", [CutResult.PENDING, CutResult.UNKNOWN])
def test_what_is_not_proven_stays_listed_and_is_refused(admission: Admission[FakeSession], result: CutResult):
    session = FakeSession(result)
    admission.admit(claim(7), lambda: session)
    assert admission.cut(Peer("prefill-0", 7)) is result
    assert admission.writers() == (Peer("prefill-0", 7),)
    assert denial(admission, claim(7)) is Denial.STALE_WRITER
    session.result = CutResult.PROVEN
    assert admission.cut(Peer("prefill-0", 7)) is CutResult.PROVEN
    assert admission.writers() == ()


def test_a_cut_of_the_past_does_not_lower_the_bar(admission: Admission[FakeSession]):
    admission.admit(claim(7), FakeSession)
    assert admission.cut(Peer("prefill-0", 3)) is CutResult.PROVEN
    assert denial(admission, claim(6)) is Denial.STALE_WRITER
    admission.admit(claim(9), FakeSession)


def test_wrong_target_layout_and_a_closed_receiver_are_told_apart(admission: Admission[FakeSession]):
    assert denial(admission, claim(7, target=Peer("decode-0", 4))) is Denial.WRONG_TARGET
    assert denial(admission, claim(7, layout=b"other")) is Denial.LAYOUT
    session = FakeSession()
    admission.admit(claim(7), lambda: session)
    admission.close()
    assert denial(admission, claim(8)) is Denial.BUSY
    admission.end_sessions()
    assert session.ended


def test_the_count_of_nodes_is_bounded(admission: Admission[FakeSession]):
    for number in range(NODES_MAX):
        admission.admit(claim(1, node=f"n{number}"), FakeSession)
    assert denial(admission, claim(1, node="one more")) is Denial.BUSY
    admission.admit(claim(2, node="n0"), FakeSession)


def test_a_session_that_cannot_be_opened_registers_nobody(admission: Admission[FakeSession]):
    def fails() -> FakeSession:
        raise OSError(24, "Too many open files")

    with pytest.raises(OSError, match="Too many"):
        admission.admit(claim(7), fails)
    assert admission.writers() == ()
