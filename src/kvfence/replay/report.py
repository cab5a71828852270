"""The report of a replay: one HTML file with a section for each act that was played.

It needs nothing but itself: no address is asked for anything, its drawings, style and script are inside.
Every figure in it comes from a result; what it says beside them explains and claims nothing new.
"""

from pathlib import Path

from kvfence import __version__
from kvfence.replay.acts import Act, Played
from kvfence.replay.markup import Markup, element, joined, paragraph, text
from kvfence.replay.report_acts import fence_body, fix_body, leak_body, numbers_body
from kvfence.replay.style import SCRIPT, STYLE

LEAD = (
    "A pool smaller than the context, a rejection that nobody heard, and pages that nobody zeroes: how one "
    "customer's words came to stand in another customer's answer, played again on real processes with a real "
    "model, and stopped."
)


def write_report(path: Path, played: Played) -> None:
    """Write the report, whole or not at all."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(report_of(played), encoding="utf-8")
    fresh.replace(path)


def report_of(played: Played) -> str:
    """Return the report as one HTML document."""
    acts = tuple(played.verdicts)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", text("kvfence replay")),
        element("style", Markup(STYLE)),
    )
    links = [element("a", text(f"{act.value} {act.title}"), href=f"#act-{act.value}") for act in acts]
    header = element(
        "header",
        element("h1", text("The incident, replayed")),
        paragraph(LEAD, class_="lead"),
        element("nav", *links, aria_label="acts"),
    )
    foot = paragraph(f"kvfence {__version__}; fault {played.play.fault.name}", class_="soft")
    main = element("main", *(_section(played, act) for act in acts), foot)
    body = element("body", header, main, element("script", Markup(SCRIPT)))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _section(played: Played, act: Act) -> Markup:
    holds = played.verdicts[act]
    verdict = element(
        "span", text("shown" if holds else "not shown"), class_=f"verdict {'good' if holds else 'bad'}"
    )
    heading = element("h2", text(f"Act {act.value}: {act.title}"), verdict)
    return element("section", heading, _body(played, act), id=f"act-{act.value}")


def _body(played: Played, act: Act) -> Markup:
    match act:
        case Act.NUMBERS if played.numbers is not None:
            return numbers_body(played.numbers)
        case Act.LEAK if played.leak is not None:
            return leak_body(played.leak)
        case Act.FENCE if played.fence is not None:
            return fence_body(played.fence)
        case Act.FIX if played.fix is not None:
            return fix_body(played.fix)
    return joined([])
