"""How a plan is shown before a run: what each scenario may cost, what is left out, the churn, the budget."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvfence.check.budget import Limits, Price
from kvfence.check.plan import Plan


def print_plan(console: Console, plan: Plan, limits: Limits, price: Price | None) -> None:
    """Print the plan. Costs are upper bounds, for this server's own context."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scenario")
    table.add_column("hazard")
    for heading in ("requests", "prompt tokens", "completion tokens", "minutes"):
        table.add_column(heading, justify="right")
    for chosen in plan.chosen:
        cost = chosen.cost
        table.add_row(
            chosen.scenario.name,
            chosen.scenario.hazard.value,
            f"{cost.requests:,}",
            f"{cost.prompt_tokens:,}",
            f"{cost.completion_tokens:,}",
            f"{cost.seconds / 60:.1f}",
        )
    cost = plan.cost
    table.add_section()
    table.add_row(
        "at most",
        "",
        f"{cost.requests:,}",
        f"{cost.prompt_tokens:,}",
        f"{cost.completion_tokens:,}",
        f"{cost.seconds / 60:.1f}",
        style="bold",
    )
    console.print(table)
    for left in plan.left:
        console.print(Text(f"not tested: {left.scenario.name}: {left.why}", style="dim"), soft_wrap=True)
    if plan.chosen:
        console.print(Text(churn_line(plan)), soft_wrap=True)
    console.print(Text(budget_line(plan, limits, price)), soft_wrap=True)


def churn_line(plan: Plan) -> str:
    """One line: what it takes until a page that was given back is handed out again.

    How large a pool is nobody says through this API, nor which end of its free list is used.
    """
    tokens = plan.cost.prompt_tokens + plan.cost.completion_tokens
    each = tokens // max(1, plan.cost.requests)
    return (
        f"churn: where the free list hands out first what came back last, an opportunity costs one request "
        f"({each:,} tokens in the mean); where free pages wait in line, it costs the whole pool: all of this "
        f"plan writes {tokens:,} tokens, so the pages of larger pools do not come round "
        "(kvfence audit reads how large they are)"
    )


def budget_line(plan: Plan, limits: Limits, price: Price | None) -> str:
    """One line: what the run may use, and what it would cost at most."""
    parts = [
        f"{value:,.10g} {name}"
        for name, value in (
            ("requests", limits.requests),
            ("tokens", limits.tokens),
            ("bytes", limits.bytes),
            ("seconds", limits.seconds),
            ("of money", limits.money),
        )
        if value is not None
    ]
    line = f"budget: {', '.join(parts) if parts else 'no limit'}"
    return line if price is None else f"{line}; the plan costs at most {price.of(plan.cost):,.2f}"
