"""`kvfence verify`: every order of events within a named scope, or the trace of a real run.

Exit codes: 0 no law is broken, 1 one is (with the shortest way there), 2 usage, 5 inconclusive: it stopped
before its scope was done, or the trace of a node is not there. Explorer and faults are loaded when the
command runs.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kvfence.protocol.errors import OperatorError

# ruff: noqa: PLC0415 -- a command line that serves has neither faults nor explorer in its process

MEMORY_MIB = 4096


def verify_command(
    scope: Annotated[str, typer.Option(help="A named scope, or test or full; --list shows them.")] = "smoke",
    fault: Annotated[list[str] | None, typer.Option(help="Switch a known fault on; may be repeated.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    max_states: Annotated[int | None, typer.Option(help="Stop after so many states.")] = None,
    memory_mib: Annotated[
        int, typer.Option(help="Stop when all processes together took as much.")
    ] = MEMORY_MIB,
    list_scopes: Annotated[bool | None, typer.Option("--list", help="List the scopes.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw what was found into this file, too.")] = None,
    trace: Annotated[list[Path] | None, typer.Option(help="Check traces of a real run instead.")] = None,
) -> int:
    """Explore every order of events within a scope, on the cores that serve."""
    from kvfence.cli.verify_view import Exploration, check, scopes_table
    from kvfence.faults import faulty_decisions
    from kvfence.verification import LISTS, SCOPES, Limits, scope_named

    console = Console(highlight=False)
    if list_scopes:
        console.print(scopes_table())
        return 0
    if trace:
        if fault or svg is not None or max_states is not None:
            raise OperatorError(
                "--trace looks at what was recorded, with the faults that it names: leave out --fault, "
                "--svg and --max-states"
            )
        return check(console, trace)
    if jobs < 1 or memory_mib < 1 or (max_states is not None and max_states < 1):
        raise OperatorError("--jobs, --max-states and --memory-mib must be above zero.")
    decisions = faulty_decisions(tuple(fault or ()))()
    limits = Limits(states_max=max_states, memory_mib=memory_mib)
    names = LISTS[scope] if scope in LISTS else (scope_named(scope, SCOPES).name,)
    return Exploration(console, decisions, jobs, limits, svg).explore(names)
