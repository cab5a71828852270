"""The drawing and the table of reuse across tenants: what timing says of it, and what counters say.

Rules it keeps: every answer is a point, with its number in words under the pointer; an answer without a count
is no answer of zero.
"""

from statistics import median

from kvfence.report.digest import Digest, Story
from kvfence.report.events import Answered
from kvfence.report.html_axes import BOTTOM, RIGHT, TOP, WIDTH, Linear, bottom_axis, dot, drawing
from kvfence.report.html_markup import Markup, element, joined, table, text
from kvfence.report.plain import figure

REUSE = "cross-tenant-reuse"
ROW = 34
NAMES_WIDTH = 190
DODGES = (0, -5, 5, -9, 9)  # points of one row stand on five lines, in turn


def _reuse_stories(digest: Digest) -> list[Story]:
    """The reuse scenario, in each of its rounds and at each target."""
    return [story for story in digest.scenarios if story.name.startswith(REUSE) and story.answers]


def _by_mark(story: Story) -> dict[str, list[Answered]]:
    """Answers by what they were for, in the order of first appearance."""
    rows: dict[str, list[Answered]] = {}
    for answer in story.answers:
        rows.setdefault(answer.mark, []).append(answer)
    return rows


def reuse_plots(digest: Digest) -> Markup | None:
    """Draw the seconds to the first token of the reuse scenario, a row for each kind of request."""
    drawn = []
    for story in _reuse_stories(digest):
        rows = {
            mark: [answer.ttft_s for answer in answers if answer.ttft_s is not None]
            for mark, answers in _by_mark(story).items()
        }
        rows = {mark: seconds for mark, seconds in rows.items() if seconds}
        drawn += [_reuse_plot(story.name, rows)] if rows else []
    return joined(drawn) if drawn else None


def _reuse_plot(name: str, rows: dict[str, list[float]]) -> Markup:
    x = Linear.over(max(map(max, rows.values())), NAMES_WIDTH, WIDTH - RIGHT)
    bottom = TOP + ROW * len(rows)
    parts = [bottom_axis(x, bottom, "seconds to the first token")]
    parts += [
        _row(x, TOP + ROW * n + ROW / 2, mark, seconds) for n, (mark, seconds) in enumerate(rows.items())
    ]
    words = f"{name}. Each point is an answer, each upright line the median of its row."
    return drawing(parts, bottom + BOTTOM, f"{name}: time to the first token by kind of request", words)


def _row(x: Linear, y: float, mark: str, seconds: list[float]) -> Markup:
    name = element("text", text(f"{mark} ({len(seconds)})"), x=NAMES_WIDTH - 10, y=y + 4, class_="end")
    dots = [
        dot(x.at(value), y + DODGES[n % len(DODGES)], "clock", f"{mark}: {value:.3f} s")
        for n, value in enumerate(seconds)
    ]
    middle = x.at(median(seconds))
    line = element("line", x1=middle, x2=middle, y1=y - 13, y2=y + 13, class_="median")
    return joined((name, *dots, line))


def reuse_table(digest: Digest) -> Markup | None:
    """Return what the server's counters said of reuse, a row for each kind of request."""
    rows = [
        tuple(map(text, (story.name, mark, *_counts(answers))))
        for story in _reuse_stories(digest)
        for mark, answers in _by_mark(story).items()
    ]
    if not rows:
        return None
    headings = (
        "scenario",
        "kind of request",
        "answers",
        "with a count",
        "with cached tokens",
        "median cached",
    )
    return table(headings, rows)


def _counts(answers: list[Answered]) -> tuple[int, int, int, str]:
    counted = sum(answer.cached_tokens is not None for answer in answers)
    return (
        len(answers),
        counted,
        sum(bool(answer.cached_tokens) for answer in answers),
        _median_cached(answers),
    )


def _median_cached(answers: list[Answered]) -> str:
    counts = [answer.cached_tokens for answer in answers if answer.cached_tokens is not None]
    return figure(float(median(counts))) if counts else "unknown"
