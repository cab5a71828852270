"""The public clock goes through its three public points."""

import pytest
from tests.check.fake.clock import PUBLIC_1M


@pytest.mark.parametrize(("tokens", "seconds"), [(200_000, 50), (385_000, 120), (769_000, 335)])
def test_the_public_figures(tokens, seconds):
    assert PUBLIC_1M.prefill_s(tokens) == pytest.approx(seconds, rel=0.01)
