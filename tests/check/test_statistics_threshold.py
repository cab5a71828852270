"""A threshold from controls: what it claims, and how often honest probes are suspected."""

import random

import pytest

from kvfence.check.statistics_threshold import CONTROLS_MIN, fit_threshold


def test_too_few_controls_fit_nothing():
    assert fit_threshold([0.0] * (CONTROLS_MIN - 1), random.Random(0)) is None
    assert fit_threshold([0.0] * CONTROLS_MIN, random.Random(0)) is not None


def test_what_fits_does_not_test():
    threshold = fit_threshold([float(value) for value in range(20)], random.Random(1))
    assert threshold.fitted == threshold.tested == 10
    # All values are different, so those above the largest of the one half are in the other.
    assert threshold.above == 19 - threshold.value


def test_clear_divergence_is_suspected():
    threshold = fit_threshold([0.0] * 20, random.Random(2))
    assert threshold.p_value([0.5] * 10) < 1e-4
    assert threshold.p_value([0.0] * 10) == 1


def test_a_server_that_always_differs_is_not():
    """Batching alone moves every answer: controls as far as probes."""
    source = random.Random(3)
    controls = [source.random() for _ in range(40)]
    threshold = fit_threshold(controls, source)
    assert threshold.p_value([source.random() for _ in range(40)]) > 0.05


def test_the_false_alarm_rate_is_bounded():
    threshold = fit_threshold([0.0] * 40, random.Random(4))
    assert threshold.false_alarm_upper_95 == pytest.approx(1 - 0.05 ** (1 / 20), abs=1e-6)


def test_honest_probes_are_rarely_suspected():
    source = random.Random(5)
    runs = 2_000
    suspected = 0
    for _ in range(runs):
        values = [source.expovariate(1) for _ in range(30)]
        suspected += fit_threshold(values[:20], source).p_value(values[20:]) <= 0.05
    assert suspected / runs <= 0.05
