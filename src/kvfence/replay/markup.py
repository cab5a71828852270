"""HTML and SVG as strings that cannot be forgotten to be escaped.

Text becomes markup by `text` alone, which escapes it; `element` takes markup as its children and escapes
its attributes. The type checker keeps the two apart.
"""

import html
from collections.abc import Iterable
from typing import NewType

Markup = NewType("Markup", str)

VOID = {"meta", "input", "br"}


def text(words: object) -> Markup:
    """Escape text."""
    return Markup(html.escape(str(words), quote=False))


def element(tag: str, *children: Markup, **attributes: object) -> Markup:
    """Build an element. `class_` and `for_` lose their underscore, others become hyphens; None drops out."""
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Markup(f"<{tag}{words}>")
    return Markup(f"<{tag}{words}>{''.join(children)}</{tag}>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Put markup end to end."""
    return Markup("".join(parts))


def paragraph(words: str, *, class_: str | None = None) -> Markup:
    """A paragraph of plain text."""
    return element("p", text(words), class_=class_)


def table(headings: Iterable[str], rows: Iterable[Iterable[Markup]], *, class_: str | None = None) -> Markup:
    """A table with one line of headings."""
    head = element("tr", *(element("th", text(heading), scope="col") for heading in headings))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("table", element("thead", head), element("tbody", *body), class_=class_)
