"""What `kvfence simulate` does and shows: one seed as a sequence diagram, or a campaign with its sums."""

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

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


# ---------------------------------------------------------------- one seed
def run_one(seed: int, campaign: Campaign, svg: Path | None, *, is_whole: bool) -> int:
    """Run a seed and tell it."""
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
    if outcome.findings and not is_whole:
        script = shrink(swarm, decisions, script, outcome.findings[0].kind)
    moments = tell(swarm, decisions, script)
    console.print(Text(draw_text(moments)), soft_wrap=True)
    if svg is not None:
        _write(svg, draw_svg(moments, _command(outcome.seed, campaign)))
        console.print(f"drawn in {svg}")


def _command(seed: int, campaign: Campaign) -> str:
    """What runs this seed again."""
    layers = sorted(layer.value for layer in campaign.layers_off)
    words = [f"--fault {name}" for name in campaign.faults] + [f"--without {name}" for name in layers]
    return " ".join([f"kvfence simulate --seed {seed}", *words])


def _write(svg: Path, drawing: str) -> None:
    try:
        svg.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise OperatorError(
            f"the diagram cannot be written to {svg}: {error.strerror}; name another file with --svg"
        ) from error


# ---------------------------------------------------------------- many seeds
def run_many(campaign: Campaign, svg: Path | None, *, is_whole: bool, requires_probes: bool) -> int:
    """Run a campaign with its progress, sum up, and tell the shortest failure."""
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
        how = "as it was" if is_whole else "shrunk"
        again = _command(shortest.seed, campaign)
        console.print(f"\nSeed {shortest.seed}, {how}; `{again}` replays it:", style="bold", soft_wrap=True)
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
