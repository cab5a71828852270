"""Write the table of scopes in docs/verification.md from docs/verification.json.

`make verify-full` puts into that file what each scope came to (`kvfence verify --record`); one scope alone:
`kvfence verify --scope NAME --record docs/verification.json`. `--check` says whether the page is up to date
(exit 1 when it is not). A test does the same, and searches some scopes again.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs" / "verification.md", ROOT / "docs" / "verification.json"
sys.path[:0] = [str(ROOT / "src")]

from kvfence.verification import LISTS, SCOPES  # noqa: E402 -- runs from anywhere

BEGIN, END = "<!-- table: docs/make_verification.py -->\n", "<!-- end of the table -->\n"
HEAD = """\
| scope | what | run by | ended | states | transitions | depth | s | the way home |
| --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |
"""


def table(data: dict[str, Any]) -> str:
    """The table, with its sums."""
    rows = [_row(name, data[name]) if name in data else _not_yet(name) for name in LISTS["full"]]
    return HEAD + "".join(rows) + "\n" + "".join(_sums(data))


def _row(name: str, kept: dict[str, Any]) -> str:
    scope = SCOPES[name]
    by = "test" if name in LISTS["test"] else "full"
    ended = "closed" if kept["ended"] == "closed" else f"**not closed**: depth {kept['depth']}"
    numbers = (kept["states"], kept["transitions"], kept["depth"])
    shown = " | ".join(f"{number:,}" for number in numbers)
    what = scope.what.removesuffix("; not closed")
    return f"| `{name}` | {what} | {by} | {ended} | {shown} | {kept['seconds']:,.0f} | {_home(kept)} |\n"


def _not_yet(name: str) -> str:
    return f"| `{name}` | {SCOPES[name].what} | full | **not run to its end yet** | | | | | |\n"


def _home(kept: dict[str, Any]) -> str:
    if "walked" in kept:
        lost = "**a walk is lost**" if kept["lost"] else "all"
        return (
            f"walks from {kept['walked']:,} of {kept['last_layer']:,}: {lost} in ≤ {kept['longest']:,} steps"
        )
    if kept["stranded"] or kept["livelock"]:
        return "**not from every state**"
    if not kept["rounds"]:
        return "every state"
    ended = f"ended by fairness {kept['left']:,}, in time {kept['timed']:,}"
    return f"every state; {kept['rounds']:,} rounds, {ended}"


def _sums(data: dict[str, Any]) -> Iterator[str]:
    for words, name in (("`make test`", "test"), ("`make verify-full`", "full")):
        kept = [data[scope] for scope in LISTS[name] if scope in data]
        states, seconds = sum(one["states"] for one in kept), sum(one["seconds"] for one in kept)
        most = max((one["peak_mib"] for one in kept), default=0)
        which = f"{len(kept)} of {len(LISTS[name])} scopes, {states:,} distinct states"
        yield f"{words}: {which}; {seconds:,.0f} s of one process, {most:,} MiB at most.\n\n"


def page(text: str, data: dict[str, Any]) -> str:
    """The document with the table of these outcomes."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + table(data) + END + rest.split(END)[1]


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    made = page(text, json.loads(DATA.read_text(encoding="utf-8")))
    if not is_check:
        PAGE.write_text(made, encoding="utf-8")
    elif made != text:
        sys.exit(
            "docs/verification.md is not what docs/verification.json says: python docs/make_verification.py"
        )


if __name__ == "__main__":
    main()
