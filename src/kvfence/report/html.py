"""A run as one HTML file: summary, tables, drawings, and a section for each finding.

Rules it keeps:
- It needs nothing but itself, and may load nothing: its content security policy forbids all but its own style
  sheet, by that sheet's hash. It has no script.
- Everything that comes from a run is escaped (`html_markup`).
- It says what it does not show.
"""

import base64
import hashlib
from collections.abc import Iterable

from kvfence.report.digest import Digest
from kvfence.report.events import AnyEvent
from kvfence.report.html_clock import ttft_plots
from kvfence.report.html_findings import finding_sections
from kvfence.report.html_markup import Markup, element, joined, paragraph, text
from kvfence.report.html_reuse import reuse_plots, reuse_table
from kvfence.report.html_style import STYLE
from kvfence.report.html_tables import (
    capabilities_table,
    findings_table,
    nodes_table,
    pairs_table,
    root_causes_table,
    run_facts,
    scenarios_table,
    sources_table,
)

LIMITS = (
    "What this report does not show: that nothing can leak. It holds what was seen with the requests and the "
    "figures above, at that time. A rate below the stated bound can be there all the same, and so can causes "
    "for which the run had no scenario. Text of answers is not in it."
)


def html_report(events: Iterable[AnyEvent]) -> str:
    """Return the report as one HTML document."""
    digest = Digest.of(events)
    sections = _sections(digest)
    links = [element("a", text(title), href=f"#{name}") for name, title, _ in sections]
    body = [
        element("h1", text(f"kvfence {digest.started.tool}")),
        paragraph(digest.headline, f"headline {_worst(digest)}".strip()),
        run_facts(digest),
        element("nav", *links, aria_label="parts of the report"),
        *(element("section", element("h2", text(title)), part, id=name) for name, title, part in sections),
        finding_sections(digest),
        paragraph(LIMITS, "soft"),
    ]
    document = element("html", _head(digest), element("body", *body), lang="en")
    return f"<!doctype html>\n{document}\n"


def _worst(digest: Digest) -> str:
    return digest.open_findings[0].finding.severity.value if digest.open_findings else ""


def policy() -> str:
    """Return the content security policy: nothing from anywhere, and one style sheet by its hash."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _head(digest: Digest) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", text(f"kvfence {digest.started.tool}: {digest.headline}")),
        element("style", Markup(STYLE)),
    )


def _sections(digest: Digest) -> list[tuple[str, str, Markup]]:
    """Name, title and content of each part that has any."""
    wanted: list[tuple[str, str, list[Markup | None]]] = [
        ("findings", "Findings", [findings_table(digest) if digest.findings else None]),
        ("nodes", "Nodes", [nodes_table(digest) if digest.nodes else None]),
        ("pairs", "Pairs", [pairs_table(digest) if digest.pairs else None]),
        ("scenarios", "Scenarios", [scenarios_table(digest) if digest.scenarios else None]),
        ("causes", "Root causes", [root_causes_table(digest) if digest.scenarios else None]),
        ("clock", "Time to the first token", [ttft_plots(digest)]),
        ("reuse", "Reuse across tenants", [reuse_plots(digest), reuse_table(digest)]),
        ("sources", "Where figures were read", [sources_table(digest) if digest.nodes else None]),
        ("server", "What was learned of the server", [_capabilities(digest)]),
        ("notes", "Notes", [_notes(digest)]),
    ]
    found = [(name, title, [part for part in parts if part is not None]) for name, title, parts in wanted]
    return [(name, title, joined(parts)) for name, title, parts in found if parts]


def _capabilities(digest: Digest) -> Markup | None:
    return capabilities_table(digest) if digest.capabilities else None


def _notes(digest: Digest) -> Markup | None:
    if not digest.notes:
        return None
    lines = (f"{'Warning: ' if note.is_warning else ''}{note.text}" for note in digest.notes)
    return element("ul", *(element("li", text(line)) for line in lines))
