"""`kvfence report`: what a run recorded, in another format."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kvfence.cli.consoles import output_console
from kvfence.cli.endings import ending_well
from kvfence.report.exit_codes import DEFAULT_FAIL_ON, OnInconclusive
from kvfence.report.finding import Severity
from kvfence.report.formats import Format

# The formats are imported when a run is converted: other commands do not need them.
# ruff: noqa: PLC0415

report_app = typer.Typer(
    help="Make reports of what a run recorded.", add_completion=False, no_args_is_help=True
)
STANDARD = "-"
Run = Annotated[
    str, typer.Argument(metavar="RUN.jsonl", help="The JSON lines of a run; - is standard input.")
]
To = Annotated[Format, typer.Option("--to", help="The format to make.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where to write it; without, standard output.")]
Inconclusive = Annotated[OnInconclusive, typer.Option(help="In JUnit: fail, or skipped for the others.")]
FailOn = Annotated[Severity, typer.Option(help="In JUnit: findings of this severity, or worse, fail.")]
Accepting = Annotated[Path | None, typer.Option("--baseline", help="TOML file of accepted findings.")]


@report_app.callback()
def report_command() -> None:
    """Hold the commands below `report`."""


def _convert(
    run: str,
    *,
    to: Format,
    out: Path | None,
    on_inconclusive: OnInconclusive,
    fail_on: Severity,
    baseline: Path | None,
) -> int:
    from datetime import UTC, datetime

    from kvfence.report.atomic import write_atomically
    from kvfence.report.baseline import read_baseline
    from kvfence.report.convert import Options, render
    from kvfence.report.jsonl import parse_events, read_events
    from kvfence.report.terminal import print_summary

    is_standard = run == STANDARD
    recorded = (
        parse_events(sys.stdin.buffer.read(), "standard input") if is_standard else read_events(Path(run))
    )
    events = recorded.events
    if recorded.cut is not None:
        Console(stderr=True).print(f"note: {recorded.cut}", highlight=False, soft_wrap=True)
    if baseline is not None:
        events = tuple(read_baseline(baseline).judge(events, datetime.now(UTC).date()))
    console = output_console()
    if to is Format.TERMINAL and out is None and console.is_terminal:
        print_summary(console, events)
        return 0
    source = None if is_standard else run
    options = Options(on_inconclusive=on_inconclusive, fail_on=fail_on, source=source)
    text = render(events, to, options)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
    return 0


@report_app.command("convert")
def convert_command(
    run: Run,
    *,
    to: To,
    out: Out = None,
    on_inconclusive: Inconclusive = OnInconclusive.TELL,
    fail_on: FailOn = DEFAULT_FAIL_ON,
    baseline: Accepting = None,
) -> None:
    """Convert a run's JSON lines to another format."""
    ending_well(_convert)(
        run, to=to, out=out, on_inconclusive=on_inconclusive, fail_on=fail_on, baseline=baseline
    )
