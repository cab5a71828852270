"""Known values, and error rates by simulation with fixed seeds."""

import math
import random

import pytest

from kvfence.check.statistics import (
    at_least,
    clopper_pearson,
    detectable_rate,
    fisher_greater,
    holm,
    lower_share,
    rule_of_three,
)
from kvfence.protocol.errors import InvariantError


class TestHolm:
    def test_a_known_case(self):
        assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == (True, False, False, True)

    def test_stops_at_the_first_that_does_not_hold(self):
        """0.03 is above 0.05 / 2, so 0.04 falls with it, although it is below 0.05 / 1."""
        assert holm([0.03, 0.04], 0.05) == (False, False)
        assert holm([0.02, 0.04], 0.05) == (True, True)

    def test_nothing_to_correct(self):
        assert holm([], 0.05) == ()
        assert holm([0.05], 0.05) == (True,)

    def test_a_false_one_among_many_is_rare(self):
        source = random.Random(1)
        runs = 4_000
        false = sum(any(holm([source.random() for _ in range(10)], 0.05)) for _ in range(runs))
        assert false / runs == pytest.approx(0.05, abs=0.012)


class TestFisher:
    def test_the_lady_tasting_tea(self):
        assert fisher_greater(3, 4, 1, 4) == pytest.approx(17 / 70)
        assert fisher_greater(4, 4, 0, 4) == pytest.approx(1 / 70)

    def test_nothing_seen_is_no_surprise(self):
        assert fisher_greater(0, 20, 0, 20) == 1
        assert fisher_greater(0, 20, 20, 20) == 1

    def test_twenty_a_side(self):
        assert fisher_greater(20, 20, 0, 20) == pytest.approx(1 / math.comb(40, 20))
        assert fisher_greater(6, 20, 0, 20) == pytest.approx(math.comb(20, 6) / math.comb(40, 6))

    def test_false_alarms(self):
        source = random.Random(2)
        runs = 3_000
        p_values = [
            fisher_greater(
                sum(source.random() < 0.3 for _ in range(20)),
                20,
                sum(source.random() < 0.3 for _ in range(20)),
                20,
            )
            for _ in range(runs)
        ]
        for alpha in (0.01, 0.05):
            assert sum(p <= alpha for p in p_values) / runs <= alpha + 0.005

    def test_more_hits_than_tries_are_a_mistake(self):
        with pytest.raises(InvariantError):
            fisher_greater(5, 4, 0, 4)


class TestClopperPearson:
    @pytest.mark.parametrize(
        ("hits", "of", "low", "high"),
        [(0, 10, 0.0, 0.3085), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0), (1, 100, 0.00025, 0.0545)],
    )
    def test_known_intervals(self, hits, of, low, high):
        assert clopper_pearson(hits, of) == pytest.approx((low, high), abs=5e-5)

    def test_twenty_of_twenty_is_at_least_86_per_cent(self):
        low, _ = clopper_pearson(20, 20, confidence=0.9)
        assert low == pytest.approx(0.05 ** (1 / 20), abs=1e-6)
        assert low > 0.86

    @pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
    def test_covers(self, rate):
        """Exactly: the chance of all counts whose interval holds the true rate."""
        covered = sum(
            at_least(hits, 30, rate) - at_least(hits + 1, 30, rate)
            for hits in range(31)
            if clopper_pearson(hits, 30)[0] <= rate <= clopper_pearson(hits, 30)[1]
        )
        assert covered >= 0.95

    def test_long_runs_do_not_overflow(self):
        low, high = clopper_pearson(100, 10_000)
        assert 0.008 < low < 0.01 < high < 0.0122

    def test_no_tries(self):
        with pytest.raises(InvariantError):
            clopper_pearson(0, 0)


class TestRuleOfThree:
    def test_the_bound(self):
        bound = rule_of_three(600, 0.5, 0.8)
        assert bound.upper_95 == pytest.approx(3 / 240)
        assert (bound.opportunities, bound.co_residence, bound.sensitivity) == (600, 0.5, 0.8)

    def test_is_at_most_one(self):
        assert rule_of_three(2, 0.5, 0.5).upper_95 == 1

    def test_a_leak_at_the_bound_is_missed_at_most_five_times_in_a_hundred(self):
        bound = rule_of_three(200, 0.5, 0.75)
        missed = (1 - bound.upper_95 * 0.5 * 0.75) ** 200
        assert 0.045 < missed <= 0.05

    @pytest.mark.parametrize("numbers", [(0, 1.0, 1.0), (5, 0.0, 1.0), (5, 1.0, 1.5)])
    def test_no_bound_from_nothing(self, numbers):
        with pytest.raises(InvariantError):
            rule_of_three(*numbers)

    def test_a_share_that_was_not_measured_is_none(self):
        assert lower_share(0, 0) is None
        assert lower_share(0, 9) is None
        assert lower_share(3, 4) == 0.75


class TestDetectableRate:
    def test_twenty_a_side(self):
        rate = detectable_rate(20)
        # Fisher at 1 % needs 7 of 20 beside none of 20; so many come in four of five runs at this rate.
        assert fisher_greater(7, 20, 0, 20) <= 0.01 < fisher_greater(6, 20, 0, 20)
        assert at_least(7, 20, rate) == pytest.approx(0.8)

    def test_too_few_show_nothing(self):
        assert detectable_rate(3) == pytest.approx(1.0)

    def test_a_noisy_control_needs_more(self):
        assert detectable_rate(20, control_rate=0.2) > detectable_rate(20)
