"""The clock's drawing: time to the first token against prompt length, with the fit and what is too fast.

Rules it keeps: it shows every answer of a scenario that sets a clock, with its numbers in words under the
pointer; where a run has several clocks, each has its own drawing.
"""

import math
from dataclasses import dataclass

from kvfence.report.digest import Digest, Story
from kvfence.report.html_axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Logarithmic,
    bottom_axis,
    curve,
    dot,
    drawing,
    left_axis,
)
from kvfence.report.html_markup import Markup, joined

HEIGHT = 320
CLOCK = "clock"
TIMED_MARKS = (CLOCK, "control", "probe")
TOO_FAST_SHARE = 0.5  # below half of what its tokens cost at least, a prompt was not read


@dataclass(frozen=True, slots=True)
class Fit:
    """Seconds to the first token of L tokens: a + b L + c L². `per_token_s`: what a token costs at least."""

    a: float
    b: float
    c: float
    per_token_s: float

    def at(self, tokens: float) -> float:
        """Seconds expected."""
        return self.a + self.b * tokens + self.c * tokens * tokens

    def floor(self, tokens: float) -> float:
        """Seconds below which an answer came too fast."""
        return TOO_FAST_SHARE * self.per_token_s * tokens


@dataclass(frozen=True, slots=True)
class Timed:
    """One point: an answer's length and seconds."""

    mark: str
    tokens: int
    seconds: float
    is_too_fast: bool


def fit_of(digest: Digest, until_s: float = math.inf) -> Fit | None:
    """Return the clock's fit as it was last told at that time, if it was."""
    known = {one.name: one.value for one in digest.capabilities if one.at_s <= until_s}
    numbers = [value for name in "abc" if isinstance(value := known.get(f"clock.{name}"), int | float)]
    if len(numbers) != len("abc"):
        return None
    a, b, c = map(float, numbers)
    least = known.get("clock.per_token")
    return Fit(a, b, c, float(least) if isinstance(least, int | float) else b)


def timed_answers(story: Story, fit: Fit | None) -> list[Timed]:
    """Return the answers of a scenario that sets a clock, with the run's own count of their prompts."""
    if all(answer.mark != CLOCK for answer in story.answers):
        return []
    points = []
    for answer in story.answers:
        tokens = answer.expected_prompt_tokens or answer.prompt_tokens
        if answer.mark in TIMED_MARKS and answer.ttft_s is not None and tokens is not None:
            is_too_fast = fit is not None and answer.ttft_s < fit.floor(tokens)
            points.append(Timed(answer.mark, tokens, answer.ttft_s, is_too_fast))
    return points


def ttft_plots(digest: Digest) -> Markup | None:
    """Draw, for each scenario that sets a clock, the time to the first token against the prompt's length."""
    drawn = []
    for story in digest.scenarios:
        fit = fit_of(digest, math.inf if story.ended is None else story.ended.at_s)
        points = timed_answers(story, fit)
        drawn += [_ttft_plot(story.name, points, fit)] if points else []
    return joined(drawn) if drawn else None


def _ttft_plot(name: str, points: list[Timed], fit: Fit | None) -> Markup:
    x = Logarithmic.over((point.tokens for point in points), LEFT, WIDTH - RIGHT)
    expected = [] if fit is None else [fit.at(point.tokens) for point in points]
    y = Logarithmic.over((*expected, *(point.seconds for point in points)), HEIGHT - BOTTOM, TOP)
    parts = [
        bottom_axis(x, HEIGHT - BOTTOM, "prompt tokens, as the run counted them"),
        left_axis(y, LEFT, "seconds to the first token"),
    ]
    if fit is not None:
        parts += [curve(x, y, fit.at, "fit"), curve(x, y, fit.floor, "limit")]
    parts += [dot(x.at(point.tokens), y.at(point.seconds), _class(point), _words(point)) for point in points]
    fast = sum(point.is_too_fast for point in points)
    label = f"{name}: time to the first token against prompt length"
    return drawing(parts, HEIGHT, label, f"{name}. {_caption(fit, fast)}")


def _class(point: Timed) -> str:
    return "outlier" if point.is_too_fast else point.mark


def _words(point: Timed) -> str:
    fast = ", too fast to have been read" if point.is_too_fast else ""
    return f"{point.mark}: {point.tokens:,} tokens, {point.seconds:.3f} s{fast}"


def _caption(fit: Fit | None, fast: int) -> str:
    points = "Both scales are logarithmic. Filled points are the clock and its controls, open ones probes."
    if fit is None:
        return f"{points} The run made no fit."
    return (
        f"{points} The line is the fit {fit.a:.3g} s + {fit.b:.3g} s · L + {fit.c:.3g} s · L². Below the "
        f"broken line, half of what tokens cost at least, none can have been read: {fast} were so fast."
    )
