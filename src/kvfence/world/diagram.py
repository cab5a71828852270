"""A run of a world as a sequence diagram, in text and as SVG.

Rules: a lane for the clients and one for each node that takes part, routers before prefill before decode; a
row for each happening, its words at the right, what was said in answer below it; what must never happen is
marked. It only draws: what is drawn comes from `telling.py`.
"""

from collections.abc import Iterator, Sequence
from html import escape

from kvfence.world.telling import CLIENTS, Moment

LANE = 11  # characters of a lane in text
ORDER = (CLIENTS, "router", "prefill", "decode")


def lanes_of(moments: Sequence[Moment]) -> list[str]:
    """The lanes that are needed, from the clients to the decode nodes."""
    names = dict.fromkeys(name for moment in moments for name in (moment.source, moment.target))
    return sorted(names, key=_place)


def _place(name: str) -> tuple[int, str]:
    rank = next((n for n, prefix in enumerate(ORDER) if name.startswith(prefix)), len(ORDER))
    return rank, name


# ---------------------------------------------------------------- text
def draw_text(moments: Sequence[Moment]) -> str:
    """Draw with characters: an arrow from lane to lane, a dot for what stays in one."""
    lanes = lanes_of(moments)
    width = max([len(moment.when) for moment in moments] + [4])
    head = "".join(name.center(LANE) for name in lanes)
    lines = [f"{'when'.rjust(width)}  {head.rstrip()}"]
    for moment in moments:
        lines += _text_rows(moment, lanes, width)
    return "\n".join(lines) + "\n"


def _text_rows(moment: Moment, lanes: list[str], width: int) -> Iterator[str]:
    source, target = lanes.index(moment.source), lanes.index(moment.target)
    drawn = _arrow(source, target, len(lanes), is_weather=moment.is_weather)
    yield f"{moment.when.rjust(width)}  {drawn}  {moment.what}"
    bare = _arrow(None, None, len(lanes), is_weather=False)
    for word in moment.said:
        yield f"{' ' * width}  {bare}    · {word}"
    for word in moment.found:
        yield f"{'!!'.rjust(width)}  {bare}  !! {word}"


def _arrow(source: int | None, target: int | None, lanes: int, *, is_weather: bool) -> str:
    """One row of the lanes."""
    row = list(" " * (LANE * lanes))
    for lane in range(lanes):
        row[_middle(lane)] = "|"
    if source is None or target is None:
        return "".join(row)
    if source == target:
        row[_middle(source)] = "~" if is_weather else "o"
        return "".join(row)
    left, right = sorted((_middle(source), _middle(target)))
    for place in range(left + 1, right):
        row[place] = "~" if is_weather else "-"
    if target > source:
        row[right - 1] = ">"
    else:
        row[left + 1] = "<"
    return "".join(row)


def _middle(lane: int) -> int:
    return lane * LANE + LANE // 2


# ---------------------------------------------------------------- SVG
LANE_PX, ROW_PX, TIME_PX, WORDS_PX = 110, 20, 90, 760
STYLE = (
    "text{font:12px ui-monospace,monospace;fill:#222}.head{font-weight:bold}.lane{stroke:#ccc}"
    ".go{stroke:#1f5fa8;fill:#1f5fa8}.weather{stroke:#b36b00;fill:#b36b00;stroke-dasharray:4 3}"
    ".said{fill:#777}.found{fill:#b00020;font-weight:bold}"
)


def draw_svg(moments: Sequence[Moment], title: str) -> str:
    """Draw as one SVG document, which needs nothing but a viewer."""
    lanes = lanes_of(moments)
    rows = sum(1 + len(moment.said) + len(moment.found) for moment in moments)
    width = TIME_PX + LANE_PX * len(lanes) + WORDS_PX
    height = ROW_PX * (rows + 4)
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="head" x="8" y="16">{escape(title)}</text>',
    ]
    for lane, name in enumerate(lanes):
        x = _lane_x(lane)
        body.append(f'<text class="head" x="{x}" y="40" text-anchor="middle">{escape(name)}</text>')
        body.append(f'<line class="lane" x1="{x}" y1="48" x2="{x}" y2="{height}"/>')
    y = 3 * ROW_PX
    for moment in moments:
        body += _svg_rows(moment, lanes, y)
        y += ROW_PX * (1 + len(moment.said) + len(moment.found))
    return "\n".join([*body, "</svg>"]) + "\n"


def _lane_x(lane: int) -> int:
    return TIME_PX + LANE_PX * lane + LANE_PX // 2


def _svg_rows(moment: Moment, lanes: list[str], y: int) -> Iterator[str]:
    start, end = _lane_x(lanes.index(moment.source)), _lane_x(lanes.index(moment.target))
    kind = "weather" if moment.is_weather else "go"
    words = TIME_PX + LANE_PX * len(lanes)
    yield f'<text x="{TIME_PX - 8}" y="{y + 4}" text-anchor="end">{escape(moment.when)}</text>'
    if start == end:
        yield f'<circle class="{kind}" cx="{start}" cy="{y}" r="4"/>'
    else:
        back = 8 if end > start else -8
        yield f'<line class="{kind}" x1="{start}" y1="{y}" x2="{end - back}" y2="{y}"/>'
        yield f'<polygon class="{kind}" points="{end},{y} {end - back},{y - 4} {end - back},{y + 4}"/>'
    yield f'<text x="{words}" y="{y + 4}">{escape(moment.what)}</text>'
    below = [("said", f"· {word}") for word in moment.said] + [("found", word) for word in moment.found]
    for row, (style, word) in enumerate(below, 1):
        yield f'<text class="{style}" x="{words + 16}" y="{y + 4 + ROW_PX * row}">{escape(word)}</text>'
