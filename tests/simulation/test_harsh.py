"""Harsh runs are drawn from their seeds, and the correct protocol survives them."""

from kvfence.simulation.harsh import OPTIONAL, REQUESTS, draw_harsh
from kvfence.simulation.run import Run
from kvfence.simulation.swarm import Feature


def test_a_seed_draws_the_same_run_again():
    assert draw_harsh(4) == draw_harsh(4)
    assert draw_harsh(4) != draw_harsh(5)


def test_features_are_on_and_off_and_writes_are_always_slow():
    drawn = [draw_harsh(seed).features for seed in range(60)]
    assert all(Feature.SLOW_WRITES in features for features in drawn)
    for feature in OPTIONAL:
        assert 5 < sum(feature in features for features in drawn) < 55


def test_the_correct_protocol_survives():
    late = 0
    for seed in range(20):
        outcome = Run(draw_harsh(seed)).go()
        assert outcome.is_clean, (seed, outcome.findings)
        assert outcome.requests == REQUESTS
        late += outcome.probes["late write lands in a quarantined page"]
    assert late > 0
