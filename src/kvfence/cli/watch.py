"""`kvfence watch`: the ordinary scenarios of a check at a trickle, for ever, with metrics for Prometheus."""

from pathlib import Path
from typing import Annotated

import typer

# What watches is imported when the command runs: other commands do not need it.
# ruff: noqa: PLC0415

URL = Annotated[str | None, typer.Argument(metavar="URL", help="Base URL, with or without /v1.")]
KeyEnv = Annotated[
    list[str] | None,
    typer.Option("--key-env", metavar="NAME", help="Variable with a key; twice for two tenants."),
]
TwoTenants = Annotated[bool, typer.Option("--two-tenants", help="The two keys are two tenants.")]
Targets = Annotated[
    Path | None, typer.Option("--targets", metavar="FILE", help="TOML profile with one target.")
]
Model = Annotated[str | None, typer.Option("--model", metavar="M", help="The model to watch.")]
Every = Annotated[
    float, typer.Option("--every", min=0.1, metavar="MIN", help="Minutes for one round of all scenarios.")
]
Listen = Annotated[str, typer.Option("--listen", metavar="H:P", help="Where /metrics is served.")]
State = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="Keeps the evidence over restarts.")
]
Lines = Annotated[Path | None, typer.Option("--jsonl", metavar="FILE", help="Keep every event.")]
Alpha = Annotated[float, typer.Option("--alpha", min=1e-6, max=0.2, help="Chance of a false alarm, ever.")]


def watch_command(
    url: URL = None,
    *,
    key_env: KeyEnv = None,
    two_tenants: TwoTenants = False,
    targets: Targets = None,
    model: Model = None,
    every: Every = 60.0,
    listen: Listen = "127.0.0.1:9464",
    state: State = None,
    jsonl: Lines = None,
    alpha: Alpha = 0.01,
) -> int:
    """Watch a server for ever with the ordinary scenarios of a check, at a trickle."""
    from kvfence.cli.watch_run import WatchFlags, run_watch

    return run_watch(
        WatchFlags(
            url=url,
            key_names=tuple(key_env or ()),
            has_two_tenants=two_tenants,
            targets=targets,
            model=model,
            every_minutes=every,
            listen=listen,
            state=state,
            jsonl=jsonl,
            alpha=alpha,
        )
    )
