"""A reader knows one engine: which pages and lines are its own, and what its figures mean.

Rules it keeps (`tests/audit/readers/conformance.py` holds every reader to them):
- It recognises its own and no other's, by marks that only its engine has.
- It never raises, whatever a server or a log says.
- A figure that cannot be read is absent, never a guess; each says where it was read.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvfence.audit.log_scan import Form, Hit, Hits
from kvfence.audit.page import Page, field, items, whole, word
from kvfence.audit.reading import Material, Notebook, Reading

SEVERAL_SERVERS = (
    "more than one server seems to have written this log, and which line is whose cannot be told: give the "
    "log of each by itself (kubectl logs --prefix keeps them apart)"
)


@dataclass(frozen=True, slots=True)
class Reader:
    """`owns` says whether a page bears marks of this engine alone; `read` returns one reading a node."""

    engine: str
    forms: tuple[Form, ...]
    owns: Callable[[Page], bool]
    read: Callable[[Material], tuple[Reading, ...]]


def form(
    name: str,
    needle: str,
    pattern: str,
    *,
    is_mark: bool = True,
    is_start: bool = False,
    is_identity: bool = False,
    is_end: bool = False,
) -> Form:
    """Return a form of line; see `log_scan.Form`."""
    return Form(
        name,
        needle,
        re.compile(pattern),
        is_mark=is_mark,
        is_start=is_start,
        is_identity=is_identity,
        is_end=is_end,
    )


def endings() -> tuple[Form, ...]:
    """The lines with which the web server of SGLang and of vLLM, and their processes, end."""
    lines = (
        "Finished server process",
        "Application shutdown complete",
        "SIGTERM received",
        "Received sigquit",
    )
    return tuple(
        form(f"end_{number}", line, f"(?P<end>{line})", is_mark=False, is_end=True)
        for number, line in enumerate(lines)
    )


def model_cards(page: Page) -> Iterator[dict[str, object]]:
    """The models of a `/v1/models` answer."""
    if field(page.data, "object") == "list":
        yield from (card for card in items(field(page.data, "data")) if isinstance(card, dict))


def is_owned_by(page: Page, owner: str) -> bool:
    """Whether `/v1/models` says that the models are served by this engine."""
    return any(word(card.get("owned_by")) == owner for card in model_cards(page))


def version_answer(page: Page, path: str = "/version") -> str | None:
    """What `GET /version` says. The path is the only mark of such an answer."""
    return word(field(page.data, "version")) if page.path == path else None


def smallest(
    hits: list[Hit], group: str, read: Callable[[object], int | None] = whole
) -> tuple[Hit, int] | None:
    """Return the line of the rank with the smallest number, and the number."""
    found = [(hit, number) for hit in hits if (number := read(hit.groups.get(group))) is not None]
    return min(found, key=lambda pair: pair[1], default=None)


def put_smallest(
    notebook: Notebook,
    hits: Hits,
    form_name: str,
    figure: str,
    *,
    group: str = "n",
    read: Callable[[object], int | None],
) -> None:
    """Write down the minimum over the ranks of what each rank said last."""
    found = smallest(hits.last(form_name), group, read)
    if found is not None:
        notebook.put_line(hits.log, found[0], figure, found[1])
