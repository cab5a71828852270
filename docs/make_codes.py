"""Write docs/codes/: a page for each code of a finding, and an index, from what `kvfence explain` reads.

`--check` writes nothing and ends with 1 when a page is out of date, missing or left over. A test does the
same.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "codes"
sys.path[:0] = [str(ROOT / "src")]

from kvfence.report.codes import CODES, Code, address_of, title_of  # noqa: E402 -- runs from anywhere
from kvfence.report.exit_codes import MEANINGS, ExitCode  # noqa: E402 -- the same
from kvfence.report.explain import parts_of  # noqa: E402 -- the same

INDEX = "README.md"
MADE = "Written by `docs/make_codes.py` from `src/kvfence/report/codes*.py`; do not edit by hand."
PARTS = (("1", "Codes of `kvfence audit`"), ("2", "Codes of `kvfence check`"))


def page(code: Code) -> str:
    """Return the page of one code."""
    lines = [f"# {code.number}: {code.title}", "", f"Severity: **{code.severity}**. {MADE}", ""]
    for heading, words in parts_of(code):
        lines += [f"## {heading.capitalize()}", "", words, ""]
    lines += ["## References", "", *(f"- {_link(reference)}" for reference in code.references), ""]
    return "\n".join(lines)


def _link(reference: str) -> str:
    title, address = title_of(reference), address_of(reference)
    return f"<{reference}>" if title == reference else f"[{reference}]({address}): {title}"


def index() -> str:
    """Return the page that lists them."""
    lines = ["# Codes of findings", "", f"`kvfence explain CODE` says the same in a terminal. {MADE}", ""]
    for first, heading in PARTS:
        lines += [f"## {heading}", "", "| code | severity | what |", "| --- | --- | --- |"]
        lines += [
            f"| [{code.number}]({code.number}.md) | {code.severity} | {code.title} |"
            for code in CODES.values()
            if code.number.startswith(f"KVF{first}")
        ]
        lines.append("")
    lines += ["## Exit codes", "", "| exit code | what it says |", "| --- | --- |"]
    lines += [f"| {code:d} | {MEANINGS[code]} |" for code in ExitCode]
    lines.append("")
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Every file of the folder by its name."""
    return {INDEX: index()} | {f"{code.number}.md": page(code) for code in CODES.values()}


def faults(folder: Path = PAGES) -> Iterator[str]:
    """What is out of date, missing or left over."""
    wanted = pages()
    for name, text in wanted.items():
        file = folder / name
        if not file.exists():
            yield f"{name} is missing"
        elif file.read_text(encoding="utf-8") != text:
            yield f"{name} is out of date"
    for file in sorted(folder.glob("*")):
        if file.name not in wanted:
            yield f"{file.name} is left over"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        found = list(faults())
        if found:
            print(f"docs/codes: {'; '.join(found)}: run `make docs`.", file=sys.stderr)
        return 1 if found else 0
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
