"""`kvfence simulate`: many deployments in virtual time, or one seed of them as a sequence diagram.

Exit codes: 0 nothing was found, 1 findings, 2 usage.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from kvfence.faults import layer_named
from kvfence.protocol.errors import OperatorError
from kvfence.simulation import (
    Campaign,
    Outcome,
    Run,
    Step,
    Tally,
    draw_swarm,
    run_campaign,
    seeds_to_find,
    shrink,
    tell,
)
from kvfence.world.diagram import draw_svg, draw_text

FOUND = 1
SEEDS = 1_000


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

    count = seeds if seeds is not None else (SEEDS if minutes is None else 1 << 40)
    if count < 1 or jobs < 1 or (minutes is not None and minutes <= 0):
        raise OperatorError("--seeds, --jobs and --minutes must be above zero.")
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
        return _run_one(seed, campaign, svg, is_whole=bool(whole))
    return _run_many(campaign, svg, is_whole=bool(whole), requires_probes=bool(require_probes))


# ---------------------------------------------------------------- one seed
def _run_one(seed: int, campaign: Campaign, svg: Path | None, *, is_whole: bool) -> int:

    run = Run(draw_swarm(seed), campaign.decisions())
    outcome = run.go()
    console = Console(highlight=False)
    _show_story(console, outcome, tuple(run.script), campaign, svg, is_whole=is_whole)
    ends = ", ".join(f"{count} {name}" for name, count in sorted(outcome.ends.items()))
    console.print(f"seed {seed}: {outcome.happenings} happenings, {outcome.virtual_us / 1e6:.3f} s; {ends}")
    return FOUND if outcome.findings else 0


def _show_story(
    console: Console,
    outcome: Outcome,
    script: tuple[Step, ...],
    campaign: Campaign,
    svg: Path | None,
    *,
    is_whole: bool,
) -> None:
    """Tell a run: shrunk to what its first finding needs, unless it is to be told whole."""

    swarm, decisions = draw_swarm(outcome.seed), campaign.decisions()
    title = f"kvfence simulate --seed {outcome.seed}"
    title += "".join(f" --fault {name}" for name in campaign.faults)
    if outcome.findings and not is_whole:
        script = shrink(swarm, decisions, script, outcome.findings[0].kind)
    moments = tell(swarm, decisions, script)
    console.print(Text(draw_text(moments)), soft_wrap=True)
    if svg is not None:
        svg.write_text(draw_svg(moments, title), encoding="utf-8")
        console.print(f"drawn in {svg}")


# ---------------------------------------------------------------- many seeds
def _run_many(campaign: Campaign, svg: Path | None, *, is_whole: bool, requires_probes: bool) -> int:

    console = Console(highlight=False)
    with _progress(console) as bar:
        total = campaign.seeds if campaign.minutes is None else None
        task = bar.add_task("simulating", total=total, found=0)
        tally, wall_s = run_campaign(
            campaign, lambda so_far: bar.update(task, completed=so_far.seeds, found=len(so_far.found))
        )
    _show_summary(console, tally, wall_s, campaign)
    if tally.failures:
        shortest = tally.failures[0]
        console.print(f"\nSeed {shortest.seed}, shrunk; `--seed {shortest.seed}` replays it:", style="bold")
        _show_story(console, shortest, shortest.script, campaign, svg, is_whole=is_whole)
    is_blind = requires_probes and bool(tally.silent_probes)
    return FOUND if tally.found or is_blind else 0


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("seeds, {task.fields[found]} with findings"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _show_summary(console: Console, tally: Tally, wall_s: float, campaign: Campaign) -> None:

    console.print(_counts_table("ends of requests", tally.ends))
    console.print(_counts_table("probes", tally.probes))
    if tally.catches:
        console.print(_counts_table("the fence spoke", tally.catches))
    if tally.kinds:
        console.print(_counts_table("runs with findings, by the first", tally.kinds))
    for name in tally.silent_probes:
        console.print(f"never reached: {name}", style="yellow")
    hours = tally.hours_a_minute(wall_s)
    console.print(
        f"{tally.seeds:,} seeds, {len(tally.found)} with findings; {tally.requests:,} requests, "
        f"{tally.happenings:,} happenings, {len(tally.rows)} rows of the tables taken"
    )
    console.print(
        f"{tally.virtual_us / 3.6e9:,.1f} simulated hours in {wall_s:,.1f} s: {hours:,.1f} a real minute; "
        f"{tally.requests / max(wall_s, 1e-9):,.0f} requests/s"
    )
    middle = seeds_to_find(tally.found, campaign.first) if campaign.faults else None
    if campaign.faults:
        said = "never found" if middle is None else f"found within {middle:g} seeds (median)"
        console.print(f"{', '.join(campaign.faults)}: {said}")


def _counts_table(title: str, counts: dict[str, int]) -> Table:
    table = Table(title, "count", box=None, pad_edge=False, header_style="bold")
    table.columns[1].justify = "right"
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(name, f"{count:,}")
    return table
