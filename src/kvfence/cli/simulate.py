"""`kvfence simulate`: many deployments in virtual time, or one seed of them as a sequence diagram.

Exit codes: 0 nothing was found, 1 findings, 2 usage. Simulator and faults are loaded when the command runs.
"""

import math
from pathlib import Path
from typing import Annotated

import typer

from kvfence.protocol.errors import OperatorError

# ruff: noqa: PLC0415 -- a command line that serves has neither faults nor simulator in its process

SEEDS = 1_000
SEEDS_ENDLESS = 1 << 40  # more than any number of minutes holds
JOBS_MAX = 256


def simulate_command(
    seeds: Annotated[int | None, typer.Option(help=f"How many seeds; {SEEDS} without --minutes.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many real minutes.")] = None,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    fault: Annotated[list[str] | None, typer.Option(help="Switch a known fault on; may be repeated.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave a layer of the fence out.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Run this one seed, and tell it.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the sequence diagram to this file.")] = None,
    whole: Annotated[bool | None, typer.Option("--whole", help="Tell a run as it was, not shrunk.")] = None,
    require_probes: Annotated[
        bool | None, typer.Option("--require-probes", help="A probe that never fires is a finding.")
    ] = None,
) -> int:
    """Simulate whole deployments in virtual time: crashes, late writes, aborts, tiny pools."""
    from kvfence.cli.simulate_view import run_many, run_one
    from kvfence.faults import layer_named
    from kvfence.simulation import Campaign

    if seed is not None and (seeds is not None or minutes is not None or require_probes):
        raise OperatorError(
            "--seed runs that one seed: leave out --seeds, --minutes and --require-probes, or else --seed"
        )
    count = seeds if seeds is not None else (SEEDS if minutes is None else SEEDS_ENDLESS)
    _check(count, minutes, jobs, svg, [first] if seed is None else [seed])
    campaign = Campaign(
        first=first,
        seeds=count,
        minutes=minutes,
        faults=tuple(fault or ()),
        layers_off=frozenset(map(layer_named, without or ())),
        jobs=jobs,
    )
    campaign.decisions()  # an unknown name is said before anything runs
    if seed is not None:
        return run_one(seed, campaign, svg, is_whole=bool(whole))
    return run_many(campaign, svg, is_whole=bool(whole), requires_probes=bool(require_probes))


def _check(count: int, minutes: float | None, jobs: int, svg: Path | None, firsts: list[int]) -> None:
    """Say what is wrong before anything runs. Raises OperatorError."""
    is_time = minutes is None or (math.isfinite(minutes) and minutes > 0)
    if count < 1 or not is_time:
        raise OperatorError("--seeds and --minutes must be above zero")
    if not 1 <= jobs <= JOBS_MAX:
        raise OperatorError(f"--jobs is {jobs}, and must be from 1 to {JOBS_MAX}; one a core is most useful")
    if min(firsts) < 0:
        raise OperatorError("seeds count from zero: --seed and --first must not be negative")
    if svg is not None and (svg.is_dir() or not svg.parent.is_dir()):
        raise OperatorError(f"--svg names {svg}; name a file in a directory that is there")
