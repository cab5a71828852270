"""Scales and axes of a drawing: values to pixels, round numbers at the ticks.

Rules it keeps: a linear axis begins at zero and ends at a round number, a logarithmic one begins and ends at
powers of ten; pixels are given to a tenth, so that equal runs draw equally.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from kvfence.report.html_markup import Markup, element, joined, text
from kvfence.report.plain import figure

WIDTH = 700
LEFT, RIGHT, TOP, BOTTOM = 64, 40, 16, 44
TICKS = 5
CURVE_STEPS = 60
SMALLEST = 1e-9


class Axis(Protocol):
    """A scale over the pixels from `start` to `end`."""

    @property
    def start(self) -> float:
        """The first pixel."""

    @property
    def end(self) -> float:
        """The last pixel."""

    def at(self, value: float) -> float:
        """Return the pixel of a value."""

    def holds(self, value: float) -> bool:
        """Whether a value lies on it."""

    def ticks(self) -> list[float]:
        """Return the values that are labelled, least first."""

    def spread(self, count: int) -> list[float]:
        """Return values at equal distances in pixels."""


@dataclass(frozen=True, slots=True)
class Linear:
    """From zero to `top`."""

    top: float
    step: float
    start: float
    end: float

    @classmethod
    def over(cls, most: float, start: float, end: float) -> "Linear":
        """Make one that holds `most`."""
        most = max(most, SMALLEST)
        step = _round_up(most / TICKS)
        return cls(step * math.ceil(most / step - SMALLEST), step, start, end)

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return round(self.start + (self.end - self.start) * value / self.top, 1)

    def holds(self, value: float) -> bool:
        """Whether a value lies on it."""
        return 0 <= value <= self.top

    def ticks(self) -> list[float]:
        """Return the values that are labelled, zero first."""
        return [self.step * number for number in range(round(self.top / self.step) + 1)]

    def spread(self, count: int) -> list[float]:
        """Return values at equal distances."""
        return [self.top * number / count for number in range(count + 1)]


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """From ten to the power of `low` to ten to the power of `high`."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> "Logarithmic":
        """Make one that holds these values; what is not above zero stands at its beginning."""
        logs = [math.log10(value) for value in values if value > 0] or [0.0]
        low = math.floor(min(logs) + SMALLEST)
        return cls(low, max(low + 1, math.ceil(max(logs) - SMALLEST)), start, end)

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        log = max(math.log10(value), self.low) if value > 0 else self.low
        return round(self.start + (self.end - self.start) * (log - self.low) / (self.high - self.low), 1)

    def holds(self, value: float) -> bool:
        """Whether a value lies on it."""
        return 10.0**self.low <= value <= 10.0**self.high

    def ticks(self) -> list[float]:
        """Return the powers of ten."""
        return [10.0**power for power in range(self.low, self.high + 1)]

    def spread(self, count: int) -> list[float]:
        """Return values at equal ratios."""
        return [10 ** (self.low + (self.high - self.low) * number / count) for number in range(count + 1)]


def _round_up(value: float) -> float:
    """Return the next 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value * (1 - SMALLEST))


def bottom_axis(axis: Axis, y: float, words: str) -> Markup:
    """Draw a horizontal axis at a height, labelled below."""
    parts = [_line(axis.start, y, axis.end, y)]
    parts += [_label(axis.at(value), y + 16, _short(value), "middle") for value in axis.ticks()]
    parts.append(_label(axis.end, y + 34, words, "end"))
    return joined(parts)


def left_axis(axis: Axis, x: float, words: str) -> Markup:
    """Draw a vertical axis, labelled at its left and named at its top."""
    parts = [_line(x, axis.start, x, axis.end)]
    parts += [_label(x - 6, axis.at(value) + 4, _short(value), "end") for value in axis.ticks()]
    parts.append(_label(x + 6, axis.end + 4, words, None))
    return joined(parts)


def curve(x: Axis, y: Axis, value_at: Callable[[float], float], class_: str) -> Markup:
    """Draw a function over the whole horizontal axis, as far as it stays within the vertical one."""
    points = [(x.at(here), y.at(value_at(here))) for here in x.spread(CURVE_STEPS) if y.holds(value_at(here))]
    way = " ".join(f"{'M' if n == 0 else 'L'}{px} {py}" for n, (px, py) in enumerate(points))
    return element("path", d=way, class_=class_) if points else joined(())


def dot(x: float, y: float, class_: str, words: str) -> Markup:
    """Draw a point with its words under the pointer."""
    return element("g", element("title", text(words)), element("circle", cx=x, cy=y, r=4.5, class_=class_))


def drawing(parts: Iterable[Markup], height: float, label: str, words: str) -> Markup:
    """Put a drawing together with its caption."""
    svg = element("svg", *parts, viewBox=f"0 0 {WIDTH} {height:g}", role="img", aria_label=label)
    return element("figure", svg, element("figcaption", text(words)))


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="axis")


def _label(x: float, y: float, words: str, class_: str | None) -> Markup:
    return element("text", text(words), x=x, y=y, class_=class_)


def _short(value: float) -> str:
    return figure(int(value) if value == int(value) else float(f"{value:.6g}"))
