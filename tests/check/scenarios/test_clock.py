"""The clock: exact on exact points, a lower bound on noisy ones, and it says when it cannot tell."""

import random

import pytest

from kvfence.check.scenarios.clock import envelope, fit

# The public figures of a deployment with a context of a million, as a curve.
PUBLIC = (0.05, 1.8444e-4, 3.2656e-10)
CONTEXT = 1_048_576


def seconds(tokens, terms=PUBLIC):
    a, b, c = terms
    return a + b * tokens + c * tokens * tokens


def measured(rng, lengths, terms=PUBLIC, runs=3):
    """Times with load on top: never less than the truth, often more."""
    return [
        (tokens, seconds(tokens, terms) * (1 + rng.expovariate(20)))
        for tokens in lengths
        for _ in range(runs)
    ]


def test_exact_points_give_the_curve_back():
    clock = fit((tokens, seconds(tokens)) for tokens in (1_024, 4_096, 16_384, 65_536))
    assert (clock.a_s, clock.b_s, clock.c_s) == pytest.approx(PUBLIC, rel=1e-6)
    assert clock.predict_s(769_000) == pytest.approx(335, rel=0.01)
    assert clock.floor_s(CONTEXT) == pytest.approx(0.5 * 1.8444e-4 * CONTEXT)


def test_the_lower_envelope_drops_what_load_added():
    assert envelope([(10, 2.0), (10, 1.0), (5, 3.0)]) == ((5, 3.0), (10, 1.0))
    lengths = (1_024, 4_096, 16_384, 65_536)
    plain = fit((tokens, seconds(tokens)) for tokens in lengths)
    loaded = fit([*((t, seconds(t)) for t in lengths), (65_536, 500.0), (1_024, 40.0)])
    assert (loaded.points, loaded.b_s) == (plain.points, plain.b_s)
    assert loaded.at_worst_s(65_536) == pytest.approx(500.0)
    assert plain.at_worst_s(65_536) == pytest.approx(plain.predict_s(65_536))


@pytest.mark.parametrize("seed", range(40))
def test_under_noise_an_honest_prompt_is_never_too_fast_and_a_placeholder_always_is(seed):
    lengths = (1_024, 4_096, 16_384, 65_536)
    clock = fit(measured(random.Random(seed), lengths))
    assert min(clock.a_s, clock.b_s, clock.c_s) >= 0
    for tokens in (100_000, 400_000, CONTEXT):
        assert clock.floor_s(tokens) < seconds(tokens)
        assert clock.can_tell(tokens, noise_s=0.01)
        assert seconds(1) < clock.floor_s(tokens)


@pytest.mark.parametrize("terms", [(0.5, 0.0, 0.0), (0.02, 1e-7, 0.0)])
def test_a_server_that_reads_faster_than_can_be_measured_is_said_to_be_one(terms):
    clock = fit((tokens, seconds(tokens, terms)) for tokens in (64, 128, 256, 512))
    assert not clock.can_tell(8_192, noise_s=0.01)


def test_where_only_the_square_is_left_a_line_bounds_it_from_below():
    terms = (0.0, 0.0, 1e-8)
    clock = fit((tokens, seconds(tokens, terms)) for tokens in (1_024, 4_096, 16_384, 65_536))
    assert clock.b_s == 0
    assert clock.per_token_s > 0
    assert clock.floor_s(CONTEXT) < seconds(CONTEXT, terms)


def test_a_falling_clock_has_no_floor_and_later_points_move_it():
    clock = fit([(64, 1.0), (512, 0.5)])
    assert clock.floor_s(4_096) == 0
    assert not clock.can_tell(4_096, noise_s=0.0)
    assert clock.with_points([(64, 0.1)]).can_tell(4_096, noise_s=0.0)


def test_one_length_is_no_clock():
    with pytest.raises(ValueError, match="two different lengths"):
        fit([(64, 1.0), (64, 1.1)])
