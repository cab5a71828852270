"""The two drawings of the HTML report: time to first token against length, and reuse across tenants.

Rules it keeps: a drawing shows every answer that it is about, with its numbers in words under the pointer; a
drawing without points is none.
"""

from dataclasses import dataclass
from statistics import median

from kvfence.report.digest import Digest
from kvfence.report.events import Answered
from kvfence.report.html_axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Linear,
    Logarithmic,
    bottom_axis,
    curve,
    drawing,
    left_axis,
)
from kvfence.report.html_markup import Markup, element, joined, table, text
from kvfence.report.plain import figure

HEIGHT = 320
CLOCK = "clock"
TIMED_MARKS = (CLOCK, "control", "probe")
REUSE = "cross-tenant-reuse"
TOO_FAST_SHARE = 0.5  # below half of the fit's linear part, a prompt was not read
ROW = 34
NAMES_WIDTH = 190
DODGES = (0, -5, 5, -9, 9)  # points of one row stand on five lines, in turn


@dataclass(frozen=True, slots=True)
class Fit:
    """Seconds to the first token of L tokens: a + b L + c L²."""

    a: float
    b: float
    c: float

    def at(self, tokens: float) -> float:
        """Seconds expected."""
        return self.a + self.b * tokens + self.c * tokens * tokens

    def floor(self, tokens: float) -> float:
        """Seconds below which an answer came too fast."""
        return TOO_FAST_SHARE * self.b * tokens


@dataclass(frozen=True, slots=True)
class Timed:
    """One point: an answer's length and seconds."""

    mark: str
    tokens: int
    seconds: float
    is_too_fast: bool


def fit_of(digest: Digest) -> Fit | None:
    """Return the clock's fit, if the run made one."""
    known = {capability.name: capability.value for capability in digest.capabilities}
    numbers = [value for name in "abc" if isinstance(value := known.get(f"clock.{name}"), int | float)]
    return Fit(*map(float, numbers)) if len(numbers) == len("abc") else None


def timed_answers(digest: Digest, fit: Fit | None) -> list[Timed]:
    """Return the answers of scenarios that set a clock, with the run's own count of their prompts."""
    clocked = {answer.scenario for answer in digest.answers if answer.mark == CLOCK}
    points = []
    for answer in digest.answers:
        tokens = answer.expected_prompt_tokens or answer.prompt_tokens
        if answer.scenario not in clocked or answer.mark not in TIMED_MARKS:
            continue
        if answer.ttft_s is not None and tokens is not None:
            is_too_fast = fit is not None and answer.ttft_s < fit.floor(tokens)
            points.append(Timed(answer.mark, tokens, answer.ttft_s, is_too_fast))
    return points


def ttft_plot(digest: Digest) -> Markup | None:
    """Draw the time to the first token against the length of the prompt."""
    fit = fit_of(digest)
    points = timed_answers(digest, fit)
    if not points:
        return None
    x = Logarithmic.over((point.tokens for point in points), LEFT, WIDTH - RIGHT)
    expected = [] if fit is None else [fit.at(point.tokens) for point in points]
    y = Logarithmic.over((*expected, *(point.seconds for point in points)), HEIGHT - BOTTOM, TOP)
    parts = [
        bottom_axis(x, HEIGHT - BOTTOM, "prompt tokens, as the run counted them"),
        left_axis(y, LEFT, "seconds to the first token"),
    ]
    if fit is not None:
        parts += [curve(x, y, fit.at, "fit"), curve(x, y, fit.floor, "limit")]
    parts += [_dot(x.at(point.tokens), y.at(point.seconds), _class(point), _words(point)) for point in points]
    fast = sum(point.is_too_fast for point in points)
    return drawing(parts, HEIGHT, "Time to the first token against prompt length", _caption(fit, fast))


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
        f"broken line, half of its linear part, answers came sooner than a prompt can be read: {fast} did."
    )


def _dot(x: float, y: float, class_: str, words: str) -> Markup:
    return element("g", element("title", text(words)), element("circle", cx=x, cy=y, r=4.5, class_=class_))


def _by_mark(digest: Digest) -> dict[str, list[Answered]]:
    """Answers of the reuse scenario by what they were for, in the order of first appearance."""
    rows: dict[str, list[Answered]] = {}
    for answer in digest.answers:
        if answer.scenario == REUSE:
            rows.setdefault(answer.mark, []).append(answer)
    return rows


def reuse_plot(digest: Digest) -> Markup | None:
    """Draw the seconds to the first token of the reuse scenario, a row for each kind of request."""
    rows = {
        mark: [answer.ttft_s for answer in answers if answer.ttft_s is not None]
        for mark, answers in _by_mark(digest).items()
    }
    rows = {mark: seconds for mark, seconds in rows.items() if seconds}
    if not rows:
        return None
    x = Linear.over(max(map(max, rows.values())), NAMES_WIDTH, WIDTH - RIGHT)
    bottom = TOP + ROW * len(rows)
    parts = [bottom_axis(x, bottom, "seconds to the first token")]
    parts += [
        _row(x, TOP + ROW * n + ROW / 2, mark, seconds) for n, (mark, seconds) in enumerate(rows.items())
    ]
    words = "Each point is an answer, each upright line the median of its row."
    return drawing(parts, bottom + BOTTOM, "Time to the first token by kind of request", words)


def _row(x: Linear, y: float, mark: str, seconds: list[float]) -> Markup:
    name = element("text", text(f"{mark} ({len(seconds)})"), x=NAMES_WIDTH - 10, y=y + 4, class_="end")
    dots = [
        _dot(x.at(value), y + DODGES[n % len(DODGES)], "clock", f"{mark}: {value:.3f} s")
        for n, value in enumerate(seconds)
    ]
    middle = x.at(median(seconds))
    line = element("line", x1=middle, x2=middle, y1=y - 13, y2=y + 13, class_="median")
    return joined((name, *dots, line))


def reuse_table(digest: Digest) -> Markup | None:
    """Return what the server's counters said of reuse, a row for each kind of request."""
    rows = [
        (
            text(mark),
            text(len(answers)),
            text(sum(answer.cached_tokens is not None for answer in answers)),
            text(sum(bool(answer.cached_tokens) for answer in answers)),
            text(_median_cached(answers)),
        )
        for mark, answers in _by_mark(digest).items()
    ]
    if not rows:
        return None
    return table(("kind of request", "answers", "with a count", "with cached tokens", "median cached"), rows)


def _median_cached(answers: list[Answered]) -> str:
    counts = [answer.cached_tokens for answer in answers if answer.cached_tokens is not None]
    return figure(float(median(counts))) if counts else "unknown"
