"""Happenings are compared by kind first."""

from tests.world.play import DECODE, PREFILL

from kvfence.protocol.words import LeaseId
from kvfence.world import happenings


def test_happenings_of_two_kinds_are_never_equal():
    land = happenings.Land(PREFILL, LeaseId(1, 1), 1)
    assert land != happenings.Complete(PREFILL, LeaseId(1, 1), 1)
    assert land == happenings.Land(PREFILL, LeaseId(1, 1), 1)
    assert len({land, happenings.Complete(*land), happenings.Stop(*land)}) == 3
    assert land != (PREFILL, LeaseId(1, 1), 1)
    assert happenings.Crash(DECODE) != happenings.Restart(DECODE)
