"""Order-randomised blocks: known values, error rates, and the power that is claimed."""

import random

import pytest

from kvfence.check.statistics_pairs import (
    DRAWN,
    coin_orders,
    detectable_shift,
    signed_rank_p,
    spread_of,
)
from kvfence.protocol.errors import InvariantError


def time_of(source):
    """A time to first token as servers have it: a floor, noise, and now and then a straggler."""
    return 0.05 + source.expovariate(200) + (0.5 if source.random() < 0.05 else 0.0)


class TestSignedRank:
    def test_all_of_one_sign(self):
        assert signed_rank_p([1, 2, 3, 4, 5], random.Random(0)) == 1 / 32
        assert signed_rank_p([-1, -2, -3, -4, -5], random.Random(0)) == 1

    def test_a_known_value(self):
        """Wilcoxon's table: of 8 pairs a sum of 33 or more has 5 chances in 256 (36, 35, 34, 33, 33)."""
        assert signed_rank_p([1, 2, -3, 4, 5, 6, 7, 8], random.Random(0)) == 5 / 256

    def test_nothing_at_all(self):
        assert signed_rank_p([], random.Random(0)) == 1
        assert signed_rank_p([0.0, 0.0, 0.0], random.Random(0)) == 1

    def test_drawn_patterns_are_never_zero(self):
        assert signed_rank_p([1.0] * 40, random.Random(0)) == 1 / (DRAWN + 1)

    def test_an_effect_below_the_minimum_is_none(self):
        source = random.Random(3)
        differences = [0.002 + source.gauss(0, 0.0005) for _ in range(12)]
        assert signed_rank_p(differences, source) < 0.001
        assert signed_rank_p(differences, source, minimum=0.005) == 1

    def test_false_alarms_with_long_tails(self):
        source = random.Random(4)
        runs = 400
        p_values = [
            signed_rank_p([time_of(source) - time_of(source) for _ in range(10)], source) for _ in range(runs)
        ]
        assert sum(p <= 0.05 for p in p_values) / runs <= 0.08
        assert sum(p <= 0.5 for p in p_values) / runs == pytest.approx(0.5, abs=0.08)

    def test_stragglers_do_not_hide_a_shift(self):
        source = random.Random(5)
        differences = [time_of(source) - time_of(source) + 0.03 for _ in range(12)]
        assert signed_rank_p(differences, source, minimum=0.005) < 0.01


class TestPlanning:
    def test_the_shift_that_is_claimed_is_shown_mostly(self):
        source = random.Random(6)
        shift = detectable_shift(1.0, 12, alpha=0.05)
        runs = 100
        shown = sum(
            signed_rank_p([source.gauss(shift, 1) for _ in range(12)], source) <= 0.05 for _ in range(runs)
        )
        assert shown / runs == pytest.approx(0.8, abs=0.08)

    def test_more_pairs_show_less(self):
        assert detectable_shift(1.0, 82) == pytest.approx(detectable_shift(1.0, 22) / 2)
        with pytest.raises(InvariantError):
            detectable_shift(1.0, 2)

    def test_spread(self):
        source = random.Random(7)
        values = [source.gauss(0, 2) for _ in range(2_000)]
        assert spread_of(values) == pytest.approx(2, rel=0.1)
        assert spread_of([*values, *[1e9] * 20]) == pytest.approx(2, rel=0.1)
        assert spread_of([]) == 0

    def test_coins(self):
        orders = coin_orders(1_000, random.Random(8))
        assert 400 < sum(orders) < 600
        assert orders == coin_orders(1_000, random.Random(8))
