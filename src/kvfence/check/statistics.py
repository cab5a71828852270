"""Counts and what they prove: exact tests and bounds for the few numbers that a run has.

Rules it keeps: the standard library alone; exact where that is possible, else on the safe side; each function
names its source. What it does not do: it decides nothing. A scenario states its p-value, and `verdicts` what
holds after correction.
"""

import math
from collections.abc import Callable, Sequence

from kvfence.protocol.errors import invariant
from kvfence.report import Bound

_BISECTIONS = 40  # halve an interval of 1 until the rest is nothing
_NEVER = 1e-6


def holm(p_values: Sequence[float], alpha: float) -> tuple[bool, ...]:
    """Which of several tests hold, so that the chance of a single false one is at most `alpha`.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979). Holds under any dependence. The order is that of the input.
    """
    holds = [False] * len(p_values)
    by_size = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(by_size):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        holds[index] = True
    return tuple(holds)


def fisher_greater(hits: int, of: int, control_hits: int, control_of: int) -> float:
    """The chance of at least `hits` among all that hit, were the rate in both groups the same: one-sided.

    R. A. Fisher, "The Design of Experiments" (1935), chapter 2: the hypergeometric tail with all margins
    fixed. Exact, so never too small; with few numbers it is too large.
    """
    invariant(0 <= hits <= of and 0 <= control_hits <= control_of, "there are no more hits than tries")
    all_hits, tries = hits + control_hits, of + control_of
    ways = math.comb(tries, all_hits)
    tail = sum(
        math.comb(of, count) * math.comb(control_of, all_hits - count)
        for count in range(hits, min(of, all_hits) + 1)
    )
    return tail / ways


def clopper_pearson(hits: int, of: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of rates under which so many hits are not too surprising.

    C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934). Covers the true rate at least as often as it says.
    """
    invariant(of > 0, "an interval needs at least one try")
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _bisect(lambda rate: at_least(hits, of, rate) >= tail)
    high = 1.0 if hits == of else _bisect(lambda rate: 1 - at_least(hits + 1, of, rate) <= tail)
    return low, high


def at_least(hits: int, of: int, rate: float) -> float:
    """The chance of `hits` or more in so many tries: the binomial's upper tail."""
    if hits <= of // 2:  # the other tail has fewer terms
        return 1 - math.fsum(_chance(count, of, rate) for count in range(hits))
    return math.fsum(_chance(count, of, rate) for count in range(hits, of + 1))


def rule_of_three(opportunities: int, co_residence: float, sensitivity: float) -> Bound:
    """The upper 95 % bound of a leak's rate when none was seen: 3 / (n · c · d), and at most 1.

    J. A. Hanley and A. Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249 (1983); an
    opportunity counts only as far as it was one (c) and would have been seen (d).
    """
    invariant(opportunities > 0, "without an opportunity there is no bound")
    invariant(0 < co_residence <= 1 and 0 < sensitivity <= 1, "shares lie in (0, 1]")
    effective = opportunities * co_residence * sensitivity
    return Bound(
        opportunities=opportunities,
        co_residence=co_residence,
        sensitivity=sensitivity,
        upper_95=min(1.0, 3 / effective),
    )


def lower_share(hits: int, of: int) -> float | None:
    """A share that may stand in a bound: the best estimate, None where nothing was measured or nothing hit.

    The estimate and not its lower limit, for the bound states what the run saw; its interval goes beside it.
    """
    return hits / of if of and hits else None


def detectable_rate(of: int, *, control_rate: float = 0.0, alpha: float = 0.01, power: float = 0.8) -> float:
    """The smallest true rate that Fisher's test with `of` a side would have shown, mostly.

    By enumeration of both binomials; `power` is how often it must show. 1.0 if nothing smaller would.
    """
    control = [(count, _chance(count, of, control_rate)) for count in range(of + 1)]
    # What never happens needs no threshold: without noise there is one case.
    needed = [(_hits_needed(of, count, alpha), chance) for count, chance in control if chance > _NEVER]

    def shown(rate: float) -> float:
        return math.fsum(chance * at_least(hits, of, rate) for hits, chance in needed if hits <= of)

    return _bisect(lambda rate: shown(rate) >= power)


def _hits_needed(of: int, control_hits: int, alpha: float) -> int:
    """The fewest hits that Fisher's test takes for more than the control's; `of` + 1 if none are enough."""
    low, high = 0, of + 1
    while low < high:
        middle = (low + high) // 2
        if fisher_greater(middle, of, control_hits, of) <= alpha:
            high = middle
        else:
            low = middle + 1
    return low


def _chance(count: int, of: int, rate: float) -> float:
    if rate <= 0.0 or rate >= 1.0:
        return float(count == (0 if rate <= 0.0 else of))
    # By logarithms: the factors of a long run do not fit into a float.
    ways = math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
    return math.exp(ways + count * math.log(rate) + (of - count) * math.log1p(-rate))


def _bisect(holds: Callable[[float], bool]) -> float:
    """The smallest rate from which on `holds` is true."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
