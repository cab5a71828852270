"""HTML and SVG as strings in which nothing can be forgotten to be escaped.

Rules it keeps: text becomes markup through `text` alone; `element` takes markup as children and escapes its
attributes; a link is made of an address of the web alone. The type checker keeps text and markup apart.
"""

import html
from collections.abc import Iterable
from typing import NewType

from kvfence.report.plain import plain

Markup = NewType("Markup", str)

VOID = {"meta", "line", "circle", "path", "rect"}
WEB = ("https://", "http://")


def text(words: object) -> Markup:
    """Return words as markup: printable characters alone, escaped."""
    return Markup(html.escape(plain(words), quote=False))


def element(tag: str, *children: Markup, **attributes: object) -> Markup:
    """Build an element. `class_` loses its underscore, others become hyphens; None drops out."""
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Markup(f"<{tag}{words}/>")
    return Markup(f"<{tag}{words}>{''.join(children)}</{tag}>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Put markup end to end."""
    return Markup("".join(parts))


def paragraph(words: object, class_: str | None = None) -> Markup:
    """Build a paragraph of text."""
    return element("p", text(words), class_=class_)


def link(address: str, words: object) -> Markup:
    """Build a link to the web; any other address stays text."""
    if not address.startswith(WEB):
        return text(words)
    return element("a", text(words), href=address, rel="noreferrer")


def table(headings: Iterable[str], rows: Iterable[Iterable[Markup]]) -> Markup:
    """Build a table with one line of headings, which scrolls by itself where it is too wide."""
    head = element("tr", *(element("th", text(heading), scope="col") for heading in headings))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element(
        "div",
        element("table", element("thead", head), element("tbody", *body)),
        class_="scroll",
        tabindex="0",
    )


def facts(pairs: Iterable[tuple[str, Markup]]) -> Markup:
    """Build a list of named facts."""
    return element(
        "dl", *(joined((element("dt", text(name)), element("dd", value))) for name, value in pairs)
    )
