"""A run's events in another format: the one place that knows them all.

Rules it keeps: every format is made from the events alone; a conversion changes nothing of what they say, and
the exit code it shows is the run's own.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console

from kvfence.report.events import AnyEvent
from kvfence.report.exit_codes import DEFAULT_FAIL_ON, OnInconclusive
from kvfence.report.finding import Severity
from kvfence.report.formats import Format
from kvfence.report.html import html_report
from kvfence.report.json_report import json_report
from kvfence.report.junit import junit
from kvfence.report.sarif import sarif
from kvfence.report.terminal import print_summary

COLUMNS_UNFOLDED = 10_000  # tables are as wide as what they hold: a row is one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What formats may ask. `source` is the path of the run's JSON lines, for places in SARIF."""

    on_inconclusive: OnInconclusive = OnInconclusive.TELL
    fail_on: Severity = DEFAULT_FAIL_ON
    source: str | None = None


def render(events: tuple[AnyEvent, ...], to: Format, options: Options | None = None) -> str:
    """Return the events in that format, as text."""
    return RENDERERS[to](events, options or Options())


def terminal_text(events: tuple[AnyEvent, ...], columns: int = COLUMNS_UNFOLDED) -> str:
    """Return the summary as plain text."""
    out = io.StringIO()
    print_summary(Console(file=out, width=columns, color_system=None), events)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


RENDERERS: dict[Format, Callable[[tuple[AnyEvent, ...], Options], str]] = {
    Format.JSON: lambda events, _: json_report(events),
    Format.SARIF: lambda events, options: sarif(events, options.source),
    Format.JUNIT: lambda events, options: junit(events, options.on_inconclusive, options.fail_on),
    Format.HTML: lambda events, _: html_report(events),
    Format.TERMINAL: lambda events, _: terminal_text(events),
}
