"""What the figures say: one section a benchmark, and the lines of the README's table.

Rules: every figure that has a target names it and says whether it was met; every figure has its spread;
a benchmark that could not run says why in its section and has no line. Text is Markdown: the terminal, the
README and docs/figures.md show the same rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Result = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One line of the README's table. `is_met` is None where there is no target."""

    what: str
    measured: str
    spread: str
    target: str = ""
    is_met: bool | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """As shown."""
        verdict = {None: "", True: "met", False: "**missed**"}[self.is_met]
        return (self.what, self.measured, self.spread, self.target, verdict)


@dataclass(frozen=True)
class Section:
    """One table, with what a reader must know to understand it."""

    title: str
    note: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


FIGURE_COLUMNS = ("figure", "measured", "spread", "target", "")


# ---------------------------------------------------------------- the fence on a real model
def fence_figures(result: Result) -> list[Figure]:
    """Shares of the fence's own calls, and the same end to end."""
    target = result["target_percent"]
    figures = []
    for row in result["rows"]:
        share = row["share_over_off_percent"]
        figures.append(
            Figure(
                f"fence `sealed` over `off`, its own CPU time, of {row['work']}",
                f"{share['median']:.2f} %",
                f"{share['least']:.2f} to {share['most']:.2f} %",
                f"at most {target:g} %",
                share["median"] <= target,
            )
        )
    for row in result["rows"]:
        over = row["overhead_percent"]
        figures.append(
            Figure(
                f"the same end to end, CPU time of {row['work']}",
                f"{over['sealed']['cpu_rounds_median']:+.2f} %",
                f"`off` against itself {over['control']['cpu_rounds_median']:+.2f} %",
            )
        )
    return figures


def fence_section(result: Result) -> Section:
    """One row a work and variant."""
    rows = []
    for row in result["rows"]:
        for name, timing in row["end_to_end"].items():
            over = row["overhead_percent"].get(name)
            rows.append(
                (
                    row["work"],
                    name,
                    _spread(timing["cpu_ms"]),
                    _spread(timing["wall_ms"]),
                    "" if over is None else f"{over['cpu_least']:+.2f} %",
                    "" if over is None else f"{over['cpu_rounds_median']:+.2f} %",
                    "" if over is None else f"{over['wall_least']:+.2f} %",
                )
            )
    columns = ("work", "level", "CPU ms", "wall ms", "CPU, least", "CPU, rounds", "wall, least")
    note = (
        f"SmolLM2 in {result['dtype']}, {result['threads']} thread(s): a prompt's whole way (reserve, "
        "compute, seal, copy, verify, adopt), and decode steps. Times: least (median, most ÷ least). The "
        "last columns are against `off`, by the least and by the median of the rounds' ratios; `control` is "
        "`off` a second time: what it shows is noise."
    )
    return Section("The fence, end to end", note, columns, tuple(rows))


def fence_parts_section(result: Result) -> Section:
    """One row a work and call of the fence."""
    rows = [
        (row["work"], part, f"{spent['off']:,.1f}", f"{spent['sealed']:,.1f}")
        for row in result["rows"]
        for part, spent in row["parts_us"].items()
    ]
    note = (
        "CPU µs of each call, metered inside the work above: a prompt, or a decode step. What a prompt costs "
        f"its decode node once (stamp, verify, adopt) is shared by {result['answer_tokens']} decode steps."
    )
    return Section(
        "The fence's own calls", note, ("work", "call", "µs at `off`", "µs at `sealed`"), tuple(rows)
    )


# ---------------------------------------------------------------- against plain transformers
def plain_figures(result: Result) -> list[Figure]:
    """Ratios by CPU time; wall time beside them."""
    return [
        Figure(
            f"speed against plain transformers, {row['dtype']} {_case(row)}",
            f"{row['cpu_ratio']:.2f} x",
            f"wall {row['wall_ratio']:.2f} x; most ÷ least {_ratio(row['paged'])}, "
            f"plain {_ratio(row['plain'])}",
            f"at least {row['target']:.2f} x",
            row["cpu_ratio"] >= row["target"],
        )
        for row in result["rows"]
    ]


def plain_section(result: Result) -> Section:
    """One row a case."""
    rows = tuple(
        (
            row["dtype"],
            _case(row),
            f"{row['plain']['cpu_ms']:,.1f} ({row['plain']['cpu_max_ms']:,.1f})",
            f"{row['paged']['cpu_ms']:,.1f} ({row['paged']['cpu_max_ms']:,.1f})",
            f"{row['cpu_ratio']:.2f}",
            f"{row['wall_ratio']:.2f}",
        )
        for row in result["rows"]
    )
    note = (
        f"The same model, {result['threads']} thread(s) and dtype, both in turn; ratios are speed of paged "
        "over plain by the least of the repeats. CPU ms: least (most)."
    )
    return Section(
        "The paged engine against plain transformers",
        note,
        ("dtype", "work", "plain CPU ms", "paged CPU ms", "CPU", "wall"),
        rows,
    )


# ---------------------------------------------------------------- parts, without a model
def parts_section(title: str, note: str) -> Callable[[Result], Section]:
    """One row a part, as `benchmarks.measure` writes them."""

    def section(result: Result) -> Section:
        rows = tuple(
            (
                row["name"],
                f"{row['cpu_us']:,.1f}",
                f"{row['wall_us']:,.1f} ({row['wall_max_us']:,.1f})",
                row["unit"],
                f"{row['share_percent']:.3f} %",
                f"{row['step']} of {row['step_ms']:g} ms",
            )
            for row in result["rows"]
        )
        return Section(title, note, ("part", "CPU µs", "wall µs (most)", "a", "share", "of"), rows)

    return section


def incident_figures(result: Result) -> list[Figure]:
    """What a lease of the incident's size costs, and its guard."""
    shown = ("lease ", "release ", "guard: check of the full pool")
    return [
        Figure(
            f"incident's size: {row['name']}",
            f"{row['cpu_us'] / 1e3:.2f} ms, {row['share_percent']:.1f} % of a {row['step_ms']:g} ms step",
            f"wall {row['wall_us'] / 1e3:.2f} to {row['wall_max_us'] / 1e3:.2f} ms",
        )
        for row in result["rows"]
        if row["name"].startswith(shown)
    ]


# ---------------------------------------------------------------- transports
def transfer_section(result: Result) -> Section:
    """One row a way."""
    rows = tuple(
        (name, f"{way['gb_per_second']:.2f}", f"{way['least_seconds'] * 1e3:.1f}", f"{way['spread']:.2f}")
        for name, way in result["ways"].items()
    )
    note = f"{result['pages']} pages of {result['page_bytes']:,} bytes, {result['repeats']} repeats in turn."
    return Section("Transports", note, ("way", "GB/s", "least ms", "most ÷ least"), rows)


# ---------------------------------------------------------------- the explorer
def explorer_section(result: Result) -> Section:
    """One row a search, and one for TLC on the twin where it was there."""
    rows = [
        (
            f"{row['name']}, {row['processes']} processes",
            f"{row['states']:,}",
            f"{row['states_per_second']:,}",
            f"{row['remembered_percent']:.1f} %",
            f"{row['kept_bytes_a_state']:.0f} ({row['peak_bytes_a_state']:,})",
        )
        for row in result["rows"]
    ]
    twin = result["twin"]
    if twin is not None:
        name = f"TLC on the twin, {twin['name']}"
        rows.append((name, f"{twin['states']:,}", f"{twin['states_per_second']:,}", "", ""))
    note = "Shipped cores; whole searches. Remembered: happenings that no core had to perform again."
    columns = ("search", "distinct states", "a second", "remembered", "bytes a state kept (peak)")
    return Section("The explorer", note, columns, tuple(rows))


def explorer_figures(result: Result) -> list[Figure]:
    """The pace of the fastest search."""
    best = max(result["rows"], key=lambda row: row["states_per_second"])
    return [
        Figure(
            f"explorer: distinct states a second, {best['processes']} processes",
            f"{best['states_per_second']:,}",
            f"{best['name']}, {best['states']:,} states; {best['kept_bytes_a_state']:.0f} bytes a state kept",
            "at least 10,000",
            best["states_per_second"] >= 10_000,
        )
    ]


# ---------------------------------------------------------------- a whole deployment
def serving_figures(result: Result) -> list[Figure]:
    """Start, idle, and load."""
    start, idle = result["start"], result["idle"]
    first = start["first_token_seconds"]
    figures = [
        Figure(
            "`kvfence serve` to the first token, model converted",
            f"{first['least']:.1f} s",
            f"{first['count']} starts, most {first['most']:.1f} s; CPU "
            f"{start['all_processes_cpu_seconds']['least']:.1f} s, at most "
            f"{start['longest_process_cpu_seconds']['least']:.1f} s of it in one process",
            f"under {start['target_seconds']:g} s",
            first["least"] < start["target_seconds"],
        ),
        Figure(
            "CPU while idle, all processes",
            f"{idle['percent']:.1f} % of a core",
            f"over {idle['seconds']:g} s",
            f"under {idle['target_percent']:g} %",
            idle["percent"] < idle["target_percent"],
        ),
    ]
    for load in result["loads"]:
        for name, words in (("ttft_ms", "time to first token"), ("tpot_ms", "time per output token")):
            spread = load[name]
            figures.append(
                Figure(
                    f"{words}, {load['concurrency']} at a time",
                    f"{spread['least']:,.0f} ms",
                    f"median {spread['median']:,.0f}, most {spread['most']:,.0f} ms",
                )
            )
    return figures


def serving_section(result: Result) -> Section:
    """One row a load."""
    rows = tuple(
        (
            str(load["concurrency"]),
            _spread(load["ttft_ms"]),
            _spread(load["tpot_ms"]),
            f"{load['tokens_per_second']['most']:,.1f}",
        )
        for load in result["loads"]
    )
    idle = ", ".join(f"{name} {share:g} %" for name, share in result["idle"]["by_process"].items())
    note = (
        f"1 prefill and 1 decode node; prompts of {result['prompt_tokens']} tokens, none like another, "
        f"answers of {result['answer_tokens']}; the client runs on the same cores. Least (median, most ÷ "
        f"least). Idle: {idle}."
    )
    return Section("A deployment", note, ("at once", "TTFT ms", "TPOT ms", "most tokens/s"), rows)


def _spread(spread: dict[str, float]) -> str:
    least = spread["least"]
    ratio = f"{spread['most'] / least:.2f}" if least else "-"
    return f"{least:,.1f} ({spread['median']:,.1f}, {ratio})"


def _case(row: Result) -> str:
    return f"{row['kind']} {row['count']} x {row['tokens']}"


def _ratio(figures: dict[str, float]) -> str:
    return f"{figures['cpu_max_ms'] / figures['cpu_ms']:.2f}"
