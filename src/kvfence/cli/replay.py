"""`kvfence replay`: the incident in four acts, in the terminal and as a report.

Exit codes: 0 each act showed what it says, 1 one did not (the leak did not happen, or a layer let it
through), 2 usage, 130 interrupted.
"""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kvfence.protocol.errors import OperatorError

REPORT = Path("kvfence-replay.html")
WHAT_IF = "Act 1: what if"


def replay_command(
    act: Annotated[
        list[int] | None,
        typer.Option(min=1, max=4, help="Play this act: 1 numbers, 2 leak, 3 fence, 4 fix; may be repeated."),
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(help="Play acts 2 and 3 for this fault instead of the incident's; see kvfence faults."),
    ] = None,
    secret: Annotated[str | None, typer.Option(help="Tenant A's secret: a few rare words.")] = None,
    html: Annotated[
        Path | None, typer.Option(help=f"File of the report (default: {REPORT} in this directory).")
    ] = None,
    no_html: Annotated[bool | None, typer.Option("--no-html", help="Write no report.")] = None,
    context_tokens: Annotated[
        int | None, typer.Option(help="The context; act 1 alone is played.", rich_help_panel=WHAT_IF)
    ] = None,
    pool_tokens: Annotated[
        int | None, typer.Option(help="The prefill pool; act 1 alone is played.", rich_help_panel=WHAT_IF)
    ] = None,
    page_tokens: Annotated[
        int | None, typer.Option(help="Tokens of a page; act 1 alone is played.", rich_help_panel=WHAT_IF)
    ] = None,
) -> int:
    """Play the incident: the numbers, the leak, the fence, the fix, on real processes of this machine."""
    # Heavy, and loaded when it is named: `kvfence --help` needs none of it.
    from kvfence.replay import INCIDENT, Act, ReplaySettings, Secret, Sizes, replay  # noqa: PLC0415

    if html is not None and no_html:
        raise OperatorError("--html and --no-html contradict each other: leave one of them out")
    given = {"context_tokens": context_tokens, "pool_tokens": pool_tokens, "page_tokens": page_tokens}
    sizes = {name: value for name, value in given.items() if value is not None}
    if sizes and act is not None and Act.NUMBERS not in act:
        raise OperatorError("--context-tokens, --pool-tokens and --page-tokens are for act 1: add --act 1")
    if act is not None:
        acts = tuple(sorted({Act(number) for number in act}))
    elif sizes:
        acts = (Act.NUMBERS,)
    else:
        acts = tuple(Act) if fault is None else (Act.LEAK, Act.FENCE)
    settings = ReplaySettings(
        acts=acts,
        fault=INCIDENT if fault is None else fault,
        sizes=Sizes(**sizes),
        secret=Secret() if secret is None else Secret.of(secret),
        html=None if no_html else html or REPORT,
    )
    return replay(settings, os.environ, Console(highlight=False))
