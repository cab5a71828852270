"""Write docs/protocol.md: the protocol's prose, its state diagrams and its tables.

Diagrams, tables, moves, timers and bounds are drawn from the very objects that the cores run on; only the
prose is written here. `python docs/make_protocol.py` writes the page, `--check` says whether it is up to
date (exit 1 when it is not). A test does the same.
"""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "protocol.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from kvfence.protocol import (  # noqa: E402 -- the path is set first, so that the script runs from anywhere
    DECODE,
    PREFILL,
    ROUTER,
    DecodeConfig,
    PrefillConfig,
    RouterConfig,
    Table,
)
from kvfence.protocol.laws import LAWS  # noqa: E402
from kvfence.protocol.ledger import MOVES, PageState  # noqa: E402
from kvfence.protocol.tables import FAIL_CLOSED, IGNORE  # noqa: E402

HEAD = """\
# The protocol

Written by `docs/make_protocol.py` from the tables in `kvfence.protocol`; do not edit by hand.

Three state machines and a page ledger: `RouterCore`, `PrefillCore`, `DecodeCore`, `PageLedger`. An event
goes in (`core.step(event)`), a list of commands comes out. There is no I/O, no clock and no randomness in
them; deadlines are events, and the generation of a timer tells a stale one. The nodes, the simulator and
the model checker run these very classes. Words are defined in the [glossary](glossary.md).

## One attempt

```mermaid
sequenceDiagram
    participant R as router
    participant D as decode
    participant P as prefill
    R->>D: Reserve(attempt, writer, tokens, max_tokens, token hash)
    Note over D: lease pages + one tail page, stamp all "unwritten"
    D->>R: Reserved(lease, pages)
    R->>P: Prefill(attempt, lease, pages, token ids)
    Note over P: lease own pages, match and pin a prefix, in one step
    loop each chunk
        Note over P: compute, seal full pages
        P-->>D: one-sided page writes, in bounded batches
    end
    Note over P: every write has completed
    P->>D: Closed(lease, Done(manifest))
    Note over D: manifest = reservation? seals verify?
    D->>R: TokenMade(position) …
    D->>R: AttemptEnded(reason)
    Note over D: pages free when no launched step is left
    D->>P: LowestLive(sequence)
```

- **The tail page.** A reservation leases one page more than the prompt needs. The writer is never given
  it: it takes the copy of a partly filled last page, or is the first page that the row grows into. So
  nothing is ever appended to a page that a remote writer holds under its present epoch.
- **Refusals** are terminal at the place where they are made: the router (over the limit, no node, queue
  full), decode (never fits, does not fit now, too much quarantined, draining, stale), prefill (the same,
  said to decode as `Closed(Refused)`). What does not fit now goes back to the head of the router's queue
  as a new attempt, after the abort of the old one was sent, and is asked again when the node says hello
  with room or an attempt on it ends; the queue deadline bounds it.
- **Tokens** carry attempt and position. Those of another attempt are dropped and answered with an abort;
  a position that is not the next one is dropped, and an answer with a hole never ends cheerfully.

## Ending

- An abort is legal in every state and interrupts no write. On decode the pages go to CLOSING until the
  writer is quiet *and* no launched step is left. A verification counts as a reader.
- **Closing is pulled.** Decode asks `Close(lease)` until it is answered. A writer that leaves too many
  unanswered is cut, like a lost one. Time alone frees nothing.
- **What Closed promises**: no byte of the lease will land any more. A write that completed, or never left,
  cannot land later. A write that was given up without proof, or was in flight when its connection was
  destroyed, may. For such a lease the writer stays silent: only the cut of its incarnation, or the
  transport's proof after a renewed connection, frees the pages on decode.
- **Source pages and prefix pins** come home when no write reads them (completion, or the connection was
  destroyed) and no launched step is left.
- **Late messages.** A writer records a lease as closed before it says so, and refuses a `Prefill` that
  comes later. Decode tells its writers the lowest lease not yet freed; below it a writer refuses
  everything and forgets. When the memory is full its floor rises: refusing is always safe.
- **Incarnations.** A newer hello only starts the cut of the older incarnation. A lost or cut writer comes
  back under a new incarnation alone. Messages of superseded or unknown incarnations are counted and
  ignored; a `Closed` speaks only for a lease of exactly its sender.
- **Poison.** A page with a foreign or torn seal is kept until every incarnation that could write to the
  pool when it was found is cut.
- **Growth.** A row that finds no free page makes the youngest lease end as PREEMPTED, never the oldest; the
  router recomputes it as a new attempt, ahead of the queue. Waiting rows are served first in, first out.
  If quarantine holds the pages for too long, the row ends as a refusal (503).

## How to read the tables

A row is `(state, fact) → (next state, action)`. A *fact* is what an event means for one record; the core
classifies, and asks `Decisions` where a fault may be planted. Facts in *italics* follow by themselves.
**A row that is missing is illegal: the record moves to CLOSING** (`fail_closed`): it is ended, and told.
**CLOSING alone has no missing rows**: what it does not know it counts and ignores (`ignore`). ABSENT is the
state of what is unknown; where a row is missing there, the key passes through CLOSING with nothing to
close.

The diagrams leave out rows that stay in their state, and the way from every state to CLOSING by a missing
row.
"""

DERIVED = {
    "PAGE_CAME",
    "PREEMPTED",
    "QUIET",
    "ALL_WRITTEN",
    "POSTS_QUIET",
    "ROOM",
    "OVER",
    "CONNECTION_FAILED",
}


def diagram(table: Table[Any, Any]) -> Iterator[str]:
    """Draw a mermaid state diagram; rows that stay where they are are left out."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {table.absent.name}"
    ways: dict[tuple[str, str], list[str]] = {}
    for (state, fact), row in table.rows.items():
        if row.next_state is not state:
            ways.setdefault((state.name, row.next_state.name), []).append(fact.value)
    for (state, target), facts in ways.items():
        label = "<br/>".join(fact.replace(":", " -") for fact in facts)
        yield f"    {state} --> {target}: {label}"
    yield "```"


def rows(table: Table[Any, Any]) -> Iterator[str]:
    """List the rows, state by state, and what is missing."""
    yield "| state | fact | next state | action |"
    yield "| --- | --- | --- | --- |"
    for (state, fact), row in table.rows.items():
        said = f"*{fact.value}*" if fact.name in DERIVED and table.role != "router" else fact.value
        if table.role == "router" and fact.name in {"ROOM", "OVER"}:
            said = f"*{fact.value}*"
        target = "·" if row.next_state is state else row.next_state.name
        yield f"| {state.name} | {said} | {target} | `{row.action}` |"
    pairs = len(table.states) * len(table.facts)
    yield ""
    yield (
        f"{len(table.rows)} rows of {pairs} pairs; the other {pairs - len(table.rows)} are `{FAIL_CLOSED}`, "
        f"in CLOSING `{IGNORE}`."
    )


def moves() -> Iterator[str]:
    """Draw the page states."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    [*] --> FREE"
    for (state, move), target in MOVES.items():
        yield f"    {state.name} --> {target.name}: {move.value}"
    yield "```"
    yield ""
    yield (
        "Every lease of a page is a new epoch; a page becomes FREE only without pins, and loses its owner "
        f"then. {len(MOVES)} moves between {len(PageState)} states; any other raises."
    )


def bounds() -> Iterator[str]:
    """List limits and deadlines with their defaults."""
    yield "| config | field | default |"
    yield "| --- | --- | --- |"
    for config in (RouterConfig, PrefillConfig, DecodeConfig):
        for field in dataclasses.fields(config):
            default = "required" if field.default is dataclasses.MISSING else f"{field.default:,}"
            yield f"| {config.__name__} | `{field.name}` | {default} |"


def coverage() -> Iterator[str]:
    """Say how many rows the tests drive."""
    from tests.protocol.test_rows import driven_rows  # noqa: PLC0415 -- the page can be drawn without tests

    driven = driven_rows()
    yield "| table | rows | driven by a test |"
    yield "| --- | --- | --- |"
    for table in (DECODE, PREFILL, ROUTER):
        hit = sum(bool(driven[table.role, state, fact]) for state, fact in table.rows)
        yield f"| {table.role} | {len(table.rows)} | {hit} |"
    yield ""
    yield "The count of each row: `python -m tests.protocol.test_rows`."


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for table in (ROUTER, DECODE, PREFILL):
        module = sys.modules[type(next(iter(table.rows))[0]).__module__]
        rules = (module.__doc__ or "").partition("\n\n")[2].strip()
        parts.append(f"## {table.role.capitalize()}: {table.record}\n\n{rules}\n")
        parts.append("\n".join(diagram(table)) + "\n")
        parts.append("\n".join(rows(table)) + "\n")
    parts.append("## Pages\n\n" + "\n".join(moves()) + "\n")
    laws = "\n".join(
        f"{law.number}. **{law.name}.** {' '.join((law.check.__doc__ or '').split()).partition('. ')[2]}"
        for law in LAWS
    )
    parts.append(f"## Laws\n\nWhat of each law a core can be asked (`laws.py`), at any moment:\n\n{laws}\n")
    parts.append("## Bounds and deadlines\n\n" + "\n".join(bounds()) + "\n")
    parts.append("## Row coverage\n\n" + "\n".join(coverage()) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/protocol.md is out of date: run `make docs`.", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
