"""A test that may be looked at for ever: evidence that grows only when something has changed.

A fixed test at one per cent, repeated each hour, raises a false alarm within days almost surely. Here each
look gives an e-value, a number whose mean is at most 1 as long as all is well. The evidence after t looks is
a mixture, over the moments at which something may have begun, of the products of e-values since; of that too
the mean is at most 1, at any time. So the chance that it ever reaches 1 / alpha is at most alpha.

Sources: J. Ville, "Étude critique de la notion de collectif" (1939), for the last sentence; A. N. Shiryaev,
"On optimum methods in quickest detection problems" (1963), for the mixture; V. Vovk and R. Wang, "E-values:
calibration, combination and applications", Annals of Statistics 49 (2021), for e-values from p-values.

Rules it keeps: state is a value that can be stored and gone on from; nothing is reset by itself, for a reset
would spend the false-alarm rate again. What it needs: each look's p-value holds given all before it, which
is so when every look draws new requests.
"""

import math
from dataclasses import dataclass

from kvfence.protocol.errors import invariant

# Beyond this, more evidence changes nothing; it keeps the product of two finite.
_LARGEST = 1e150


def e_of_p(p_value: float) -> float:
    """The e-value of a p-value: 1 / (2 · sqrt(p)), whose mean under uniform p-values is 1."""
    invariant(0 < p_value <= 1, "a p-value lies in (0, 1]")
    return 0.5 / math.sqrt(p_value)


def e_of_count(hits: int, of: int, *, rate: float, rate_if_broken: float) -> float:
    """The e-value of a count: how much likelier it is if broken than if well (A. Wald, 1945).

    `rate` is an upper bound of the rate when all is well, `rate_if_broken` what would matter.
    """
    invariant(0 < rate < rate_if_broken < 1, "broken means more often")
    hit, miss = rate_if_broken / rate, (1 - rate_if_broken) / (1 - rate)
    exponent = hits * math.log(hit) + (of - hits) * math.log(miss)
    return math.exp(min(exponent, math.log(_LARGEST)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What `looks` looks have come to. `alpha` is the chance of a false alarm, ever."""

    alpha: float
    looks: int = 0
    begun: float = 0.0  # the mixture over beginnings up to now

    def after(self, e_value: float) -> "Evidence":
        """The evidence with one more look."""
        looks = self.looks + 1
        # A beginning at look t weighs 1 / (t · (t + 1)); all of them weigh 1 together.
        begun = min(_LARGEST, (self.begun + 1 / (looks * (looks + 1))) * e_value)
        return Evidence(alpha=self.alpha, looks=looks, begun=begun)

    @property
    def value(self) -> float:
        """The evidence: 1 at the start, and 1 on average for as long as all is well."""
        return self.begun + 1 / (self.looks + 1)

    @property
    def is_alarm(self) -> bool:
        """Whether it is enough."""
        return self.value >= 1 / self.alpha
