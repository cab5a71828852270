"""The drawings of the report, as SVG: page maps, and the bars of context, pool and band.

A page is a block of its slots. Its frame says whether decode read it for the request; its slots say whose
bytes they hold. The words under a drawing say the same in numbers.
"""

from collections import Counter

from kvfence.replay.markup import Markup, element, joined, text
from kvfence.replay.page_map import MapPage, Owner, PageMap
from kvfence.replay.scaled import ScaledLeak

CLASSES = {Owner.READER: "own", Owner.OTHER: "other", Owner.NOBODY: "empty"}
CELL = 8
SLOTS_ACROSS = 4
PAGES_ACROSS = 20
GAP = 7
BAR_WIDTH = 700

NAMED_WIDTH, NAMED_HEIGHT = 36, 20


def page_map_drawing(page_map: PageMap, reader: str = "B", other: str = "A") -> Markup:
    """Draw a block table of any length, with its key and a caption."""
    page_tokens = len(page_map.pages[0].slots)
    rows = -(-page_tokens // SLOTS_ACROSS)
    width, height = SLOTS_ACROSS * CELL, rows * CELL
    lines = -(-len(page_map.pages) // PAGES_ACROSS)
    blocks = []
    for index, page in enumerate(page_map.pages):
        line, column = divmod(index, PAGES_ACROSS)
        first = index * page_tokens
        is_read = first < page_map.read_slots
        body = _page(page, first, is_read=is_read, height=height)
        place = f"translate({column * (width + GAP) + 1} {line * (height + GAP) + 1})"
        blocks.append(element("g", body, transform=place))
    across = min(PAGES_ACROSS, len(page_map.pages))
    total_width, total_height = across * (width + GAP) - GAP + 2, lines * (height + GAP) - GAP + 2
    svg = element(
        "svg",
        joined(blocks),
        viewBox=f"0 0 {total_width} {total_height}",
        width=total_width,
        role="img",
        aria_label=caption_words(page_map, reader, other),
    )
    return element(
        "figure",
        map_key(reader, other),
        element("div", svg, class_="scroll"),
        element(
            "figcaption",
            text(f"{caption_words(page_map, reader, other)} The map is {page_map.origin.value}."),
        ),
    )


def caption_words(page_map: PageMap, reader: str, other: str) -> str:
    """Say a map in numbers."""
    counts = (
        f"{page_map.count(Owner.OTHER):,} hold {other}'s bytes, {page_map.count(Owner.READER):,} are "
        f"{reader}'s own, {page_map.count(Owner.NOBODY):,} are empty"
    )
    if page_map.read_slots:
        pages = len(page_map.pages)
        return f"Decode read {page_map.read_slots:,} slots in {pages} pages for {reader}: {counts}."
    return (
        f"Decode read none of the {page_map.shown_slots:,} slots that it had reserved for {reader}: {counts}."
    )


def map_key(reader: str, other: str) -> Markup:
    """Say what the colours and frames mean."""
    entries = (
        ("--own", f"{reader}'s own bytes"),
        ("--other", f"{other}'s bytes"),
        ("--empty", "empty"),
    )
    spans = [element("span", text(words), style=f"--swatch: var({name})") for name, words in entries]
    frames = element("em", text("solid frame: read; dashed frame: reserved, not read"))
    return element("div", *spans, frames, class_="key")


def _page(page: MapPage, first_position: int, *, is_read: bool, height: int) -> Markup:
    """Draw one page: its most common owner as one area, the other slots on top, then grid and frame."""
    width = SLOTS_ACROSS * CELL
    main = Counter(page.slots).most_common(1)[0][0]
    parts = [element("rect", width=width, height=height, class_=CLASSES[main])]
    for slot, owner in enumerate(page.slots):
        if owner is not main:
            row, column = divmod(slot, SLOTS_ACROSS)
            parts.append(
                element("rect", x=column * CELL, y=row * CELL, width=CELL, height=CELL, class_=CLASSES[owner])
            )
    across = "".join(f"M{x} 0V{height}" for x in range(CELL, width, CELL))
    down = "".join(f"M0 {y}H{width}" for y in range(CELL, height, CELL))
    parts.append(element("path", d=across + down, class_="grid"))
    parts.append(element("rect", width=width, height=height, class_="read" if is_read else "unread"))
    return joined([element("title", text(_page_words(page, first_position, is_read=is_read))), *parts])


def _page_words(page: MapPage, first_position: int, *, is_read: bool) -> str:
    counts = ", ".join(f"{count} {owner.value}" for owner, count in Counter(page.slots).most_common())
    last = first_position + len(page.slots) - 1
    place = f"page {page.page}, positions {first_position} to {last}"
    return f"{place}: {counts}; {'read' if is_read else 'not read'}"


def scaled_drawing(scaled: ScaledLeak) -> Markup:
    """Draw the scaled-down pool: every slot with the name of what is in it, a page a line."""
    cells = []
    for position, written in enumerate(scaled.read):
        row, column = divmod(position, scaled.page_tokens)
        place = f"translate({column * NAMED_WIDTH} {row * (NAMED_HEIGHT + 4)})"
        name = element("text", text(written.name), x=NAMED_WIDTH / 2 - 1, y=14, class_="on")
        box = element(
            "rect",
            width=NAMED_WIDTH - 2,
            height=NAMED_HEIGHT,
            rx=2,
            class_="own" if written.tenant == "B" else "other",
        )
        cells.append(element("g", box, name, transform=place))
    rows = -(-len(scaled.read) // scaled.page_tokens)
    width, height = scaled.page_tokens * NAMED_WIDTH, rows * (NAMED_HEIGHT + 4)
    words = (
        f"What decode reads for B, a page a line: {len(scaled.foreign):,} of {len(scaled.read):,} slots "
        f"({scaled.foreign_percent:.1f} %) are A's."
    )
    svg = element(
        "svg", joined(cells), viewBox=f"0 0 {width} {height}", width=width, role="img", aria_label=words
    )
    return element("figure", element("div", svg, class_="scroll"), element("figcaption", text(words)))


def band_drawing(context_tokens: int, pool_tokens: int, held_tokens: int) -> Markup:
    """Draw context and pool as bars of one scale, and the band between them; the sliders move them."""
    most = max(context_tokens, pool_tokens)

    def length(tokens: int) -> str:
        return f"{BAR_WIDTH * tokens / most:.2f}"

    def bar(y: int, width: str, kind: str, name: str, x: str = "0") -> Markup:
        return element("rect", x=x, y=y, width=width, height=18, class_=kind, id=name)

    return element(
        "svg",
        element("text", text("context: what is promised"), y=11),
        bar(16, length(context_tokens), "empty", "bar-context"),
        element("text", text("prefill pool: what can be held; in red, the band"), y=51),
        bar(56, length(pool_tokens), "own", "bar-pool"),
        bar(56, length(context_tokens - held_tokens), "other", "bar-band", x=length(held_tokens)),
        viewBox=f"0 0 {BAR_WIDTH} 76",
        width=BAR_WIDTH,
        role="img",
        aria_label="context, pool, and the band between them",
    )
