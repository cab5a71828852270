"""`kvfence faults`: the known defects that can be switched on, as a table, as JSON, or one explained.

The catalogue is loaded when the command runs: a command line that serves does not have it in its process.
"""

import json
from typing import Annotated

import typer
from rich.console import Console

from kvfence.cli.endings import ending_well

# The catalogue is imported where it is shown, and nowhere on the way to `kvfence serve`.
# ruff: noqa: PLC0415

faults_app = typer.Typer(
    help="Known defects that can be switched on: what each re-creates, and which layers stop it.",
    add_completion=False,
)
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def _list(*, as_json: bool) -> int:
    from kvfence.cli.faults_view import catalogue_as_data, overview

    if as_json:
        _say_json(catalogue_as_data())
    else:
        Console(highlight=False).print(overview())
    return 0


def _show(name: str, *, as_json: bool) -> int:
    from kvfence.cli.faults_view import explanation, fault_as_data

    if as_json:
        _say_json(fault_as_data(name))
    else:
        Console(highlight=False).print(explanation(name), soft_wrap=True)
    return 0


def _say_json(data: dict[str, object]) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


@faults_app.callback(invoke_without_command=True)
def faults_command(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the known defects that can be switched on."""
    if context.invoked_subcommand is None:
        ending_well(_list)(as_json=as_json)


@faults_app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(help="Name of a fault, such as rejected-continues/incident.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Explain one: its class, the public bugs, the decisions, what leaks, who catches it, how to run it."""
    ending_well(_show)(name, as_json=as_json)
