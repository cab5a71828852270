"""How long a server takes to read a prompt: a + bL + cL² seconds for L tokens, from a few measured lengths.

Rules it keeps:
- The fit goes through the lower envelope, the least time of each length: load only ever adds time.
- None of the three is negative, and errors are relative, so that short prompts count as much as long ones.
- `floor_s` is half of b·L: an honest prefill cannot be that fast, since its cost a token only grows with the
  length. Below it a time is too fast; that is a statement about the clock's own measurements, not a proof.

It measures nothing and waits for nothing: numbers go in, numbers come out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

Point = tuple[int, float]  # tokens, seconds

TERMS = 3
SHARE_OF_FLOOR = 0.5
# A pivot below this share of its column says that two terms cannot be told apart at these lengths.
PIVOT_MIN = 1e-12


@dataclass(frozen=True, slots=True)
class Clock:
    """`points` is the lower envelope that was fitted; `per_token_s` what a token costs at least.

    `spread` is how many times longer than its least the longest length took, at worst: what load does here.
    """

    a_s: float
    b_s: float
    c_s: float
    per_token_s: float
    points: tuple[Point, ...]
    spread: float = 1.0

    def predict_s(self, tokens: int) -> float:
        """Seconds that a prompt of that length should take."""
        return self.a_s + self.b_s * tokens + self.c_s * tokens * tokens

    def at_worst_s(self, tokens: int) -> float:
        """Seconds that it may take under load like that of the clock's own measurements."""
        return self.predict_s(tokens) * self.spread

    def floor_s(self, tokens: int) -> float:
        """Below this a prompt was answered faster than it can be read."""
        return SHARE_OF_FLOOR * self.per_token_s * tokens

    def can_tell(self, tokens: int, noise_s: float) -> bool:
        """Whether a prompt that nobody read would stand out: the least time of all lies below the floor."""
        return self.points[0][1] + 2 * noise_s < self.floor_s(tokens)

    def with_points(self, more: Iterable[Point]) -> "Clock":
        """The clock with further measurements in its envelope."""
        more = tuple(more)
        clock = fit((*self.points, *more))
        return replace(clock, spread=max(self.spread, clock.spread))


def envelope(points: Iterable[Point]) -> tuple[Point, ...]:
    """The least time of each length, by length."""
    least: dict[int, float] = {}
    for tokens, seconds in points:
        least[tokens] = min(seconds, least.get(tokens, seconds))
    return tuple(sorted(least.items()))


def fit(points: Iterable[Point]) -> Clock:
    """Fit the clock. Raises ValueError for fewer than two lengths."""
    points = tuple(points)
    lower = envelope(points)
    if len(lower) < 2:
        raise ValueError("a clock wants at least two different lengths")
    a, b, c = _best(lower, (0, 1, 2))
    # Where noise has put everything into the square, half of a straight line's slope stands in: beyond twice
    # its longest length the whole of it lies below every curve of this kind through the same points.
    per_token = max(b, _best(lower, (0, 1))[1] / 2)
    return Clock(a_s=a, b_s=b, c_s=c, per_token_s=per_token, points=lower, spread=_spread(points, lower))


def _spread(points: Sequence[Point], lower: Sequence[Point]) -> float:
    longest, least = lower[-1]
    return max(seconds for tokens, seconds in points if tokens == longest) / least


def _best(points: Sequence[Point], terms: tuple[int, ...]) -> tuple[float, float, float]:
    """Least relative squares without negative terms: the best of all choices of terms that stay positive."""
    best, least = (0.0, 0.0, 0.0), float("inf")
    for count in range(1, len(terms) + 1):
        for chosen in combinations(terms, count):
            found = _solve(points, chosen)
            if found is None or min(found) < 0:
                continue
            error = _error(points, found)
            # A further term has to earn its place.
            if error < least * (1 - 1e-9):
                best, least = found, error
    return best


def _error(points: Sequence[Point], terms: Sequence[float]) -> float:
    """Sum of squared relative errors."""
    return sum(
        (sum(term * _power(tokens, index) for index, term in enumerate(terms)) / seconds - 1) ** 2
        for tokens, seconds in points
    )


def _solve(points: Sequence[Point], chosen: tuple[int, ...]) -> tuple[float, float, float] | None:
    """The terms that minimise the relative error, by the normal equations; None where they are not unique."""
    top = max(tokens for tokens, _ in points)
    rows = [[_power(tokens / top, index) / seconds for index in chosen] for tokens, seconds in points]
    left = [[sum(row[i] * row[j] for row in rows) for j in range(len(chosen))] for i in range(len(chosen))]
    right = [sum(row[i] for row in rows) for i in range(len(chosen))]
    solved = _eliminate(left, right)
    if solved is None:
        return None
    terms = [0.0] * TERMS
    for index, value in zip(chosen, solved, strict=True):
        terms[index] = value / _power(top, index)
    return terms[0], terms[1], terms[2]


def _eliminate(left: list[list[float]], right: list[float]) -> list[float] | None:
    """Gauss with pivots, for at most three unknowns."""
    size = len(right)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(left[row][column]))
        if abs(left[pivot][column]) <= PIVOT_MIN * max(abs(value) for value in left[pivot]):
            return None
        left[column], left[pivot] = left[pivot], left[column]
        right[column], right[pivot] = right[pivot], right[column]
        for row in range(column + 1, size):
            factor = left[row][column] / left[column][column]
            right[row] -= factor * right[column]
            for at in range(column, size):
                left[row][at] -= factor * left[column][at]
    values = [0.0] * size
    for row in reversed(range(size)):
        rest = sum(left[row][at] * values[at] for at in range(row + 1, size))
        values[row] = (right[row] - rest) / left[row][row]
    return values


def _power(tokens: float, index: int) -> float:
    return (1.0, tokens, tokens * tokens)[index]
