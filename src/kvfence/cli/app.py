"""The commands of `kvfence`, and how they end.

Exit codes: 0 good, 2 usage or configuration, 3 our own fault, 130 interrupted. A command's module is
light; what is heavy is imported when the command runs.
"""

from typing import Annotated

import typer
from rich.console import Console

from kvfence import __version__
from kvfence.cli.audit import audit_command
from kvfence.cli.check import check_command
from kvfence.cli.endings import ending_well
from kvfence.cli.explain import explain_command
from kvfence.cli.faults import faults_app
from kvfence.cli.replay import replay_command
from kvfence.cli.report import report_app
from kvfence.cli.serve import serve_command
from kvfence.cli.simulate import simulate_command
from kvfence.cli.verify import verify_command
from kvfence.cli.watch import watch_command

app = typer.Typer(
    name="kvfence",
    help="LLM serving in which a KV page cannot be read by a request it was not written for.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        Console().print(f"kvfence {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = None,
) -> None:
    """Hold what stands before the command."""


app.add_typer(faults_app, name="faults")
app.add_typer(report_app, name="report")
app.command("audit", help=audit_command.__doc__)(ending_well(audit_command))
app.command("check", help=check_command.__doc__)(ending_well(check_command))
app.command("explain", help=explain_command.__doc__)(ending_well(explain_command))
app.command("replay", help=replay_command.__doc__)(ending_well(replay_command))
app.command("serve", help=serve_command.__doc__)(ending_well(serve_command))
app.command("simulate", help=simulate_command.__doc__)(ending_well(simulate_command))
app.command("verify", help=verify_command.__doc__)(ending_well(verify_command))
app.command("watch", help=watch_command.__doc__)(ending_well(watch_command))


def main() -> None:
    """Run the command line; does not return."""
    app()
