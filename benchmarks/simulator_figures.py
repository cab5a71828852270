"""What the figures of the simulator say: its table, and its lines of the README's."""

from benchmarks.figures import Figure, Result, Section


def simulator_section(result: Result) -> Section:
    """Requests beside the real engine's, and simulated hours."""
    engine = result["engine_requests_per_second"]
    rows = (
        ("requests/s, simulated", *_three(result["requests_per_second"])),
        ("requests/s, real engine", "" if engine is None else f"{engine:,.1f}", "", ""),
        ("simulated hours a real minute", *_three(result["hours_per_minute"])),
        ("happenings/s", *_three(result["happenings_per_second"])),
    )
    note = (
        f"{result['requests']} requests like those of the serving benchmark, sixteen at once, in calm "
        "weather; hours and happenings are those of ordinary seeds. One process."
    )
    return Section("The simulator", note, ("what", "median", "least", "most"), rows)


def simulator_figures(result: Result) -> list[Figure]:
    """How many times faster than the engine, and how much time goes by."""
    hours, times, target = result["hours_per_minute"], result["times_engine"], result["target_times"]
    figures = [
        Figure(
            "simulated hours a real minute",
            f"{hours['median']:,.0f}",
            f"{hours['least']:,.0f} to {hours['most']:,.0f}",
        )
    ]
    if times is not None:
        spread = result["requests_per_second"]
        figures.append(
            Figure(
                "requests simulated for one that the real engine answers, sixteen at once",
                f"{times:,.0f}",
                f"{spread['least']:,.0f} to {spread['most']:,.0f} requests/s",
                f"at least {target}",
                times >= target,
            )
        )
    return figures


def _three(spread: dict[str, float]) -> tuple[str, str, str]:
    return f"{spread['median']:,.1f}", f"{spread['least']:,.1f}", f"{spread['most']:,.1f}"
