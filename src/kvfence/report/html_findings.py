"""A section for each finding of the HTML report: what was seen, what else it could be, what to do.

Rules it keeps: the words of the run come first, those of the code's entry after them, under their headings.
"""

from collections.abc import Iterator

from kvfence.report.codes import CODES, address_of, title_of
from kvfence.report.digest import Digest
from kvfence.report.events import FindingMade
from kvfence.report.explain import parts_of
from kvfence.report.finding import Finding
from kvfence.report.html_markup import Markup, element, facts, joined, link, paragraph, text
from kvfence.report.html_tables import tag
from kvfence.report.plain import figure


def finding_sections(digest: Digest) -> Markup:
    """Return a section for each finding, in the order of the table."""
    return joined(_section(number, made) for number, made in enumerate(digest.findings, start=1))


def _section(number: int, made: FindingMade) -> Markup:
    finding = made.finding
    code = CODES.get(finding.code)
    title = finding.code if code is None else f"{finding.code}: {code.title}"
    heading = element("h2", text(title), tag(finding.severity.value))
    parts = [heading, paragraph(finding.about, "soft"), paragraph(finding.what)]
    if made.accepted is not None:
        parts.append(paragraph(f"Accepted by the baseline: {made.accepted}", "soft"))
    if finding.evidence:
        parts += [
            element("h3", text("Evidence")),
            facts((name, text(figure(value))) for name, value in finding.evidence.items()),
        ]
    parts += _words_of_the_run(finding)
    if code is not None:
        for name, words in parts_of(code):
            parts += [element("h3", text(name.capitalize())), paragraph(words)]
    parts += [element("h3", text("References")), _references(finding), _identity(made)]
    return element("section", *parts, id=f"finding-{number}", class_="finding")


def _words_of_the_run(finding: Finding) -> Iterator[Markup]:
    for name, words in (
        ("Control", finding.control),
        ("What else it could be", finding.rival),
        ("Smallest effect that the run could have seen", finding.smallest_effect),
        ("To do here", finding.fix),
    ):
        if words is not None:
            yield element("h3", text(name))
            yield paragraph(words)
    if finding.replay is not None:
        yield element("h3", text("Replay"))
        yield element("pre", text(finding.replay))


def _references(finding: Finding) -> Markup:
    code = CODES.get(finding.code)
    names = dict.fromkeys((*(() if code is None else code.references), *finding.references))
    return element("ul", *(element("li", _reference(name)) for name in names))


def _reference(name: str) -> Markup:
    title = title_of(name)
    return link(address_of(name) or "", name if title == name else f"{name}: {title}")


def _identity(made: FindingMade) -> Markup:
    place = made.finding.place
    pairs = [
        ("fingerprint", made.finding.fingerprint),
        ("scenario", made.scenario),
        ("place", None if place is None else f"{place.path}, line {place.line}"),
    ]
    return facts((name, text(value)) for name, value in pairs if value is not None)
