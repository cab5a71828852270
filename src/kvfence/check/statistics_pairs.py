"""Timing by order-randomised blocks: two requests side by side, in an order that a coin decides.

Rules it keeps:
- The coin is what the test stands on: were there no effect, each difference could as well have had the other
  sign. Nothing is supposed of the times themselves, which have long tails and drift.
- An effect below a minimum that was stated before is no finding, however sure it is.
"""

import itertools
import math
import random
from collections.abc import Sequence
from statistics import NormalDist, median

from kvfence.protocol.errors import invariant

EXACT_PAIRS_MAX = 12  # 4,096 sign patterns are gone through; beyond, patterns are drawn
DRAWN = 9_999
# A standard deviation per median absolute deviation, for a normal distribution.
_MAD_TO_SIGMA = 1.4826
# What the signed-rank test needs more than a t-test when times are normal: 3/pi is its efficiency.
_RANK_EFFICIENCY = 3 / math.pi


def coin_orders(blocks: int, source: random.Random) -> tuple[bool, ...]:
    """For each block whether the treated request goes first."""
    return tuple(source.random() < 0.5 for _ in range(blocks))


def signed_rank_p(differences: Sequence[float], source: random.Random, *, minimum: float = 0.0) -> float:
    """How surprising so large differences are, if the true shift is `minimum` or less: one-sided.

    F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1 (1945), as a randomisation
    test over signs: E. J. G. Pitman (1937). Drawn patterns count the observed one, so that the value is never
    too small: B. Phipson and G. K. Smyth, "Permutation p-values should never be zero" (2010).
    """
    shifted = [difference - minimum for difference in differences]
    ranks = _ranks([abs(value) for value in shifted])
    # A difference of nothing at all speaks for neither side.
    ranks = [0.0 if value == 0 else rank for value, rank in zip(shifted, ranks, strict=True)]
    seen = math.fsum(rank for value, rank in zip(shifted, ranks, strict=True) if value > 0)
    if len(ranks) <= EXACT_PAIRS_MAX:
        patterns = list(itertools.product((False, True), repeat=len(ranks)))
        as_large = sum(_sum_of(ranks, signs) >= seen - 1e-9 for signs in patterns)
        return as_large / len(patterns)
    as_large = sum(
        _sum_of(ranks, [source.random() < 0.5 for _ in ranks]) >= seen - 1e-9 for _ in range(DRAWN)
    )
    return (as_large + 1) / (DRAWN + 1)


def detectable_shift(spread: float, pairs: int, *, alpha: float = 0.01, power: float = 0.8) -> float:
    """The smallest shift that so many pairs would have shown, mostly, above the stated minimum.

    `spread` is the standard deviation of differences where there is no effect (`spread_of`). By the normal
    approximation with the signed-rank test's efficiency: E. L. Lehmann, "Nonparametrics" (1975), section 4.2.
    Two pairs are given up, because with few of them the approximation promises too much.
    """
    invariant(pairs > 2, "two pairs show nothing")
    normal = NormalDist()
    z_values = normal.inv_cdf(1 - alpha) + normal.inv_cdf(power)
    return z_values * spread / math.sqrt((pairs - 2) * _RANK_EFFICIENCY)


def spread_of(differences: Sequence[float]) -> float:
    """A standard deviation that a few stragglers do not move: 1.4826 times the median absolute deviation.

    F. R. Hampel, "The influence curve and its role in robust estimation" (1974).
    """
    if not differences:
        return 0.0
    middle = median(differences)
    return _MAD_TO_SIGMA * median(abs(difference - middle) for difference in differences)


def _sum_of(ranks: Sequence[float], signs: Sequence[bool]) -> float:
    return math.fsum(rank for rank, is_positive in zip(ranks, signs, strict=True) if is_positive)


def _ranks(values: Sequence[float]) -> list[float]:
    """1 for the smallest; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    for _, group in itertools.groupby(enumerate(order, start=1), key=lambda entry: values[entry[1]]):
        members = list(group)
        mean = sum(rank for rank, _ in members) / len(members)
        for _, index in members:
            ranks[index] = mean
    return ranks
