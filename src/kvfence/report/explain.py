"""What `kvfence explain` shows: a code in words, and all of them in a list. The docs pages say the same.

Rules it keeps: it reads the registry and adds no fact of its own.
"""

from collections.abc import Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kvfence.report.codes import CODES, Code, address_of, code_named, title_of

HEADINGS = (("what it means", "what"), ("how it comes about", "why"), ("what to do", "mend"))
INDENT = "  "


def explanation(name: str) -> Text:
    """One code for people. Raises OperatorError for a name that is none."""
    code = code_named(name)
    text = Text.assemble((code.number, "bold"), f": {code.title}\n", (f"severity: {code.severity}\n", "dim"))
    for heading, words in parts_of(code):
        text.append(f"\n{heading}\n", "dim")
        text.append(f"{INDENT}{words}\n")
    text.append("\nreferences\n", "dim")
    for reference in code.references:
        text.append(f"{INDENT}{reference_line(reference)}\n")
    text.rstrip()
    return text


def parts_of(code: Code) -> Iterator[tuple[str, str]]:
    """The headings of an entry with their words, in order."""
    for heading, name in HEADINGS:
        yield heading, getattr(code, name)


def reference_line(reference: str) -> str:
    """A reference with its title and where it can be read."""
    address, title = address_of(reference), title_of(reference)
    return reference if title == reference else f"{reference}: {title} ({address})"


def listing() -> Group:
    """Every code in a line."""
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for heading in ("code", "severity", "what"):
        table.add_column(heading, no_wrap=heading != "what")
    for code in CODES.values():
        table.add_row(code.number, code.severity.value, code.title)
    return Group(table, Text("kvfence explain CODE says what it means, how it comes about, and what to do"))


def code_as_data(name: str) -> dict[str, object]:
    """One code as plain data. Raises OperatorError for a name that is none."""
    code = code_named(name)
    return {
        "code": code.number,
        "title": code.title,
        "severity": code.severity.value,
        "what": code.what,
        "why": code.why,
        "mend": code.mend,
        "references": [
            {"name": reference, "title": title_of(reference), "url": address_of(reference)}
            for reference in code.references
        ],
    }


def codes_as_data() -> dict[str, object]:
    """Every code as plain data."""
    return {"codes": [code_as_data(number) for number in CODES]}
