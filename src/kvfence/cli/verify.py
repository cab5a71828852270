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
WALKS = 2_000


def verify_command(
    scope: Annotated[str, typer.Option(help="A named scope, or test or full; --list shows them.")] = "smoke",
    fault: Annotated[list[str] | None, typer.Option(help="Switch a known fault on; may be repeated.")] = None,
    without: Annotated[
        list[str] | None, typer.Option(help="Leave a layer of the fence out, by name; may be repeated.")
    ] = None,
    leaks: Annotated[
        bool | None, typer.Option("--leaks", help="Look past broken laws, for slots of others alone.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    max_states: Annotated[int | None, typer.Option(help="Stop after so many states.")] = None,
    memory_mib: Annotated[
        int, typer.Option(help="Stop when all processes together took as much.")
    ] = MEMORY_MIB,
    walks: Annotated[
        int, typer.Option(help="Walks home from the last layer of a scope that does not close.")
    ] = WALKS,
    list_scopes: Annotated[bool | None, typer.Option("--list", help="List the scopes.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw what was found into this file, too.")] = None,
    record: Annotated[Path | None, typer.Option(help="Keep what each scope came to in this file.")] = None,
    trace: Annotated[list[Path] | None, typer.Option(help="Check traces of a real run instead.")] = None,
) -> int:
    """Explore every order of events within a scope, on the cores that serve."""
    from kvfence.cli.verify_view import Exploration, check, scopes_table
    from kvfence.faults import faulty_decisions, layer_named
    from kvfence.verification import LISTS, SCOPES, Limits, scope_named

    console = Console(highlight=False)
    if list_scopes:
        console.print(scopes_table())
        return 0
    if trace:
        if fault or without or svg is not None or max_states is not None or record is not None:
            raise OperatorError(
                "--trace looks at what was recorded, with the faults that it names: leave out --fault, "
                "--without, --svg, --record and --max-states"
            )
        return check(console, trace)
    if min(jobs, memory_mib, walks) < 1 or (max_states is not None and max_states < 1):
        raise OperatorError("--jobs, --max-states, --memory-mib and --walks must be above zero.")
    if record is not None and (fault or without):
        raise OperatorError("--record keeps what the correct protocol came to: no --fault, no --without")
    layers_off = tuple(layer_named(name) for name in without or ())
    decisions = faulty_decisions(tuple(fault or ()), layers_off)()
    limits = Limits(states_max=max_states, memory_mib=memory_mib, walks_max=walks)
    names = LISTS[scope] if scope in LISTS else (scope_named(scope, SCOPES).name,)
    return Exploration(console, decisions, jobs, limits, svg, record, leaks=bool(leaks)).explore(names)
