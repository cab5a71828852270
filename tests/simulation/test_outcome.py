"""An outcome without findings is clean."""

from tests.simulation.test_tally import LATE, an_outcome


def test_only_findings_make_an_outcome_unclean():
    assert an_outcome(1).is_clean
    assert not an_outcome(1, (LATE,)).is_clean
