"""How different is too different: a threshold fitted on one half of the A/A controls, tested on the other.

Rules it keeps:
- What fits the threshold never tests it: a threshold looks better than it is on what it was made from.
- Probes are compared with the second half by how many lie above the threshold, and not by the threshold's
  word: if it was fitted badly, controls lie above it too.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from kvfence.check.statistics import clopper_pearson, fisher_greater

CONTROLS_MIN = 8  # four to fit, four to test; less fits nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """`value`: what no control of the first half passed. `above` of the `tested` in the second half did."""

    value: float
    fitted: int
    tested: int
    above: int

    @property
    def false_alarm_upper_95(self) -> float:
        """The upper 95 % bound of how often an honest answer lies above it."""
        # One-sided: both tails of 90 % hold five each.
        return clopper_pearson(self.above, self.tested, confidence=0.9)[1]

    def p_value(self, probes: Sequence[float]) -> float:
        """How surprising the probes above the threshold are, beside the second half of the controls."""
        above = sum(probe > self.value for probe in probes)
        return fisher_greater(above, len(probes), self.above, self.tested)


def fit_threshold(controls: Sequence[float], source: random.Random) -> Threshold | None:
    """Fit on a random half, test on the other; None with fewer than `CONTROLS_MIN` controls.

    The threshold is the largest of the first half: of m honest values the next is larger with a chance of
    1 / (m + 1), whatever their distribution (S. S. Wilks, "Determination of sample sizes for setting
    tolerance limits", 1941). Splitting the sample: D. R. Cox, "A note on data-splitting for the evaluation of
    significance levels", Biometrika 62 (1975).
    """
    if len(controls) < CONTROLS_MIN:
        return None
    shuffled = source.sample(list(controls), len(controls))
    half = len(shuffled) // 2
    fitted, tested = shuffled[:half], shuffled[half:]
    value = max(fitted)
    above = sum(control > value for control in tested)
    return Threshold(value=value, fitted=len(fitted), tested=len(tested), above=above)
