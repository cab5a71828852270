"""What the terminal draws of each act's result.

One function an act, from the result to something rich can print; colours carry nothing that letters do not
say too, so that plain output holds the same.
"""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvfence.replay.acts import Act, Fence, Leak, Numbers, Played
from kvfence.replay.fix import Fix
from kvfence.replay.page_map import Owner, PageMap
from kvfence.replay.scene import Scene
from kvfence.replay.trial import Trial

OWNER_LETTERS = {Owner.READER: "B", Owner.OTHER: "A", Owner.NOBODY: "."}
OWNER_STYLES = {Owner.READER: "bold white on blue", Owner.OTHER: "white on red", Owner.NOBODY: "dim"}
NAMES_SHOWN = 6
MAP_COLUMNS = 64
SLOTS_SHOWN = 256


def view_of(played: Played, act: Act) -> RenderableType:
    """Draw an act that was played."""
    result = {
        Act.NUMBERS: played.numbers,
        Act.LEAK: played.leak,
        Act.FENCE: played.fence,
        Act.FIX: played.fix,
    }[act]
    match result:
        case Numbers():
            return numbers_view(result)
        case Leak():
            return leak_view(result)
        case Fence():
            return fence_view(result)
        case Fix():
            return fix_view(result)
        case None:
            return Text("not played")


def verdict_text(act: Act, *, holds: bool) -> Text:
    """Say whether an act showed what it says."""
    mark = Text("shown", style="bold green") if holds else Text("NOT SHOWN", style="bold red")
    return Text.assemble(f"  act {act.value}: ", mark)


def numbers_view(numbers: Numbers) -> RenderableType:
    """Act 1: a table of figures, the scaled-down pool, and what kvfence says to such sizes."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("figure")
    table.add_column("computed", justify="right")
    table.add_column("published", justify="right")
    for figure in numbers.figures:
        published = "" if figure.published is None else figure.published
        style = "" if figure.agrees else "bold red"
        table.add_row(figure.what, Text(figure.computed, style=style), published)
    return Group(table, Text(""), *_scaled_lines(numbers), *_refusal_lines(numbers.refusal))


def _scaled_lines(numbers: Numbers) -> list[RenderableType]:
    scaled = numbers.scaled
    names = ", ".join(written.name for written in scaled.foreign[:NAMES_SHOWN])
    return [
        Text(
            f"  scaled down: decode reads {len(scaled.read):,} slots for B, of which {len(scaled.foreign):,} "
            f"({scaled.foreign_percent:.1f} %) are A's: {names}, …"
        ),
        map_view(numbers.page_map),
    ]


def _refusal_lines(refusal: str | None) -> list[RenderableType]:
    return [] if refusal is None else [Text(f"  kvfence serve says: {refusal}", style="italic")]


def leak_view(leak: Leak) -> RenderableType:
    """Act 2: what B was answered, how fast, and out of whose slots."""
    trial, answer = leak.trial, leak.trial.answer
    first = "" if answer.first_token_seconds is None else f"{answer.first_token_seconds:.2f} s"
    rows: list[tuple[str, str | Text]] = [
        ("fault", leak.play.fault.name),
        ("status", f"HTTP {answer.status}"),
        ("prompt_tokens", f"{answer.prompt_tokens or 0:,} reported, {trial.sent_tokens:,} sent"),
        ("first token", f"{first}{_honest_words(leak)}"),
        ("answer", _marked(answer.text, trial.words)),
        ("A's words in it", ", ".join(trial.words) or "none"),
    ]
    if leak.play.scene is Scene.GUESS:
        rows.append(
            ("from A's pages", f"{trial.reused_tokens:,} tokens of the prompt were served from the cache")
        )
    return Group(_rows(rows), *_map_lines(trial))


def no_map_words(trial: Trial) -> str:
    """Say why there is no page map."""
    if trial.reused_tokens:
        return "no page map: the pages that were shared are prefill's, and B's own were written for B"
    return "no page map: decode gave B no page"


def _honest_words(leak: Leak) -> str:
    """Say what an honest time is, where A's own time is one: what is guessed was cached for A too."""
    if leak.play.scene is Scene.GUESS:
        return ""
    return f"; computing such a prompt takes {leak.trial.honest_seconds:.2f} s here"


def fence_view(fence: Fence) -> RenderableType:
    """Act 3: one line a layer."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for heading in ("layer alone", "stopped", "answer", "why", "A's slots read"):
        table.add_column(heading, overflow="fold")
    for trial in fence.trials:
        stopped = Text("yes", style="green") if trial.is_stopped else Text("NO", style="bold red")
        table.add_row(
            layer_name(trial),
            stopped,
            f"HTTP {trial.answer.status}",
            trial_reason(trial),
            f"{trial.foreign_read:,}",
        )
    if not fence.trials:
        table.add_row("none", "", "", "no layer of a running deployment is expected to see this fault", "")
    return Group(table, *(line for trial in fence.trials[-1:] for line in _map_lines(trial)))


def fix_view(fix: Fix) -> RenderableType:
    """Act 4: both refusals, and the abort moment by moment."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for heading in ("a client leaves in mid-transfer", "s", "quarantined", "free", "written"):
        table.add_column(heading, justify="left" if heading.startswith("a ") else "right")
    for moment in fix.abort.moments:
        table.add_row(
            moment.what,
            f"{moment.seconds:.1f}",
            str(moment.quarantined),
            str(moment.free),
            str(moment.written),
        )
    rows = [
        ("start", fix.refused_start),
        ("status", f"HTTP {fix.answer.status}"),
        ("message", fix.answer.message or ""),
        ("shorter prompt", control_words(fix.control)),
    ]
    return Group(_rows(rows), Text(""), table, Text(f"  {late_words(fix)}"))


def control_words(control: Trial) -> str:
    """Say how B's shorter prompt was served, after the same secret had stood in the same pages."""
    first = control.answer.first_token_seconds
    when = "no token came" if first is None else f"first token after {first:.2f} s"
    words = ", ".join(control.words) or "none"
    return (
        f"{control.sent_tokens:,} tokens: HTTP {control.answer.status}, {when}; A's words in the answer: "
        f"{words}; A's slots read: {control.foreign_read:,}"
    )


def late_words(fix: Fix) -> str:
    """Say what the bound on batches in flight allowed, and what landed."""
    abort = fix.abort
    return (
        f"pages that landed after the client had left: {abort.landed_late}; the bound is {abort.late_max} "
        f"(batches of {abort.batch_pages} pages); of {abort.prompt_pages} pages, "
        f"{abort.prompt_pages - abort.moments[-1].written} were never sent"
    )


def layer_name(trial: Trial) -> str:
    """Name the layer that was on."""
    return "none" if trial.alone is None else trial.alone.value


def trial_reason(trial: Trial) -> str:
    """Say why B was refused: what the nodes counted, or the code of the answer."""
    return ", ".join(trial.reasons) or trial.answer.code or "not refused"


def map_view(page_map: PageMap) -> Text:
    """Draw a map: a small one slot by slot, a large one with a cell a page."""
    if len(page_map.slots) <= SLOTS_SHOWN:
        return _slots_view(page_map)
    text = Text()
    for index, page in enumerate(page_map.pages):
        if index % MAP_COLUMNS == 0:
            text.append("\n  " if index else "  ")
        owner = _main_owner(page.slots)
        text.append(OWNER_LETTERS[owner], style=OWNER_STYLES[owner])
    return text


def _slots_view(page_map: PageMap) -> Text:
    text = Text(" ")
    for page in page_map.pages:
        text.append(" ")
        for owner in page.slots:
            text.append(OWNER_LETTERS[owner], style=OWNER_STYLES[owner])
    return text


def _main_owner(slots: tuple[Owner, ...]) -> Owner:
    """Return who matters most in a page: somebody else before the reader, and the reader before nobody."""
    return next(owner for owner in (Owner.OTHER, Owner.READER, Owner.NOBODY) if owner in slots)


def _map_lines(trial: Trial) -> list[RenderableType]:
    page_map = trial.page_map
    if page_map is None:
        return [Text(f"  {no_map_words(trial)}", style="dim")]
    other, own, empty = (page_map.count(owner) for owner in (Owner.OTHER, Owner.READER, Owner.NOBODY))
    shown = f"{page_map.shown_slots:,} slots"
    read = f"for B decode reads {shown}"
    if not page_map.read_slots:
        read = f"nothing is read; of the {shown} reserved"
    words = f"  {read}: {other:,} with A's bytes, {own:,} B's own, {empty:,} empty"
    per = "slot" if len(page_map.slots) <= SLOTS_SHOWN else "page"
    legend = f"  a letter a {per}; A: bytes of A's, B: B's own, dot: empty"
    return [Text(words), map_view(page_map), Text(f"{legend}; {page_map.origin.value}", style="dim")]


def _rows(rows: Sequence[tuple[str, str | Text]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim")
    table.add_column()
    for label, words in rows:
        table.add_row(f"  {label}", words)
    return table


def _marked(text: str, words: tuple[str, ...]) -> Text:
    """Return an answer with A's words marked."""
    marked = Text(text)
    if words:
        marked.highlight_words(list(words), style="bold white on red", case_sensitive=False)
    return marked
