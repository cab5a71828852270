"""The terminal: each act as a live view while it is played, and what it showed when it is over.

On a terminal the steps of an act are drawn in place, with the time that the running one takes, and give way
to the result. Elsewhere each step is a line. What is drawn of a result is `terminal_views.py`'s.

It decides nothing and reads nothing but what it is given.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kvfence.replay.acts import Act, Played
from kvfence.replay.deployment import Say
from kvfence.replay.terminal_views import verdict_text, view_of

REFRESHES_PER_SECOND = 8
STEPS_SHOWN = 12


class Stage:
    """Where a replay is seen. `clock` gives seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Show on `console`."""
        self._console, self._clock = console, clock

    @contextlib.contextmanager
    def act(self, act: Act) -> Iterator[Say]:
        """Show an act while it is played; what it yields is told each step."""
        self._console.rule(Text(f"Act {act.value}: {act.title}", style="bold"), align="left")
        if not self._console.is_terminal:
            yield self._line
            return
        steps = _Steps(act, self._clock)
        with Live(steps, console=self._console, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
            yield steps.add

    def _line(self, words: str, *, is_detail: bool = False) -> None:
        """Print a step; details pass too quickly to be worth a line."""
        if not is_detail:
            self._console.print(Text(f"  {words}"), soft_wrap=True)

    def show(self, played: Played, act: Act) -> None:
        """Draw what an act showed, and whether that is what it says."""
        self._console.print(view_of(played, act))
        self._console.print(verdict_text(act, holds=played.verdicts[act]), soft_wrap=True)
        self._console.print()

    def close(self, played: Played, report: Path | None) -> None:
        """Say how it ended, and where the report is."""
        missed = [act for act, holds in played.verdicts.items() if not holds]
        if missed:
            names = ", ".join(f"act {act.value}" for act in missed)
            self._console.print(Text(f"{names} did not show what it says.", style="bold red"), soft_wrap=True)
        if report is not None:
            self._console.print(Text.assemble("Report: ", (str(report), "bold")), soft_wrap=True)


class _Steps:
    """The steps of an act so far; drawn anew at each refresh."""

    def __init__(self, act: Act, clock: Callable[[], float]) -> None:
        self._act, self._clock = act, clock
        self._done: list[str] = []
        self._current: str | None = None
        self._detail = ""
        self._since = clock()
        self._spinner = Spinner("dots")

    def add(self, words: str, *, is_detail: bool = False) -> None:
        """Begin a step; the one before is done. A detail stands beside the present one until the next."""
        self._detail = words if is_detail else ""
        if is_detail:
            return
        if self._current is not None:
            self._done.append(f"{self._current} ({self._clock() - self._since:.1f} s)")
        self._current, self._since = words, self._clock()

    def __rich__(self) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        for words in self._done[-STEPS_SHOWN:]:
            table.add_row(Text("✓", style="green"), Text(words, style="dim"))
        if self._current is not None:
            seconds = f"{self._current} … {self._clock() - self._since:.0f} s"
            table.add_row(self._spinner, Text.assemble(seconds, (f"  {self._detail}", "dim")))
        return Panel(Group(table), title=f"act {self._act.value}", title_align="left", border_style="dim")
