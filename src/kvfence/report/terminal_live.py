"""A run in a terminal while it goes on: the scenario, what it used of its budget, verdicts as they fall.

Rules it keeps:
- Where the output is no terminal it is lines alone, one a verdict, finding or warning; an audit says nothing
  before its summary, so that the first line is the summary's.
- What is shown while it runs is gone when it ends; the summary stands in its place.
"""

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from kvfence.report.events import (
    Answered,
    AnyEvent,
    Cost,
    FindingMade,
    Noted,
    RunEnded,
    RunStarted,
    ScenarioEnded,
    ScenarioStarted,
)
from kvfence.report.plain import counted, plain
from kvfence.report.terminal import VERDICT_STYLES, finding_line

LIFELINE = "lifeline"
REFRESHES_PER_S = 4


class LiveView:
    """Shows events as they come. A context: what is drawn is cleared on leaving it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._is_quiet = False
        self._budget: Cost | None = None
        self._scenario: str | None = None
        self._requests = 0
        self._tokens = 0
        self._seconds = 0.0
        self._lines: list[Text] = []

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, transient=True, refresh_per_second=REFRESHES_PER_S)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, event: AnyEvent) -> None:
        """Take one event in, and show what it changes."""
        self._seconds = max(self._seconds, event.at_s)
        if isinstance(event, RunStarted):
            self._is_quiet = event.tool == "audit"
            self._budget = event.budget
        elif isinstance(event, ScenarioStarted):
            self._scenario = event.scenario
        elif isinstance(event, Answered):
            self._count(event)
        elif isinstance(event, RunEnded):
            self._scenario = None
        line = _line_of(event)
        if line is not None:
            self._say(line)
        if self._live is not None:
            self._live.update(self.picture())

    def _count(self, answer: Answered) -> None:
        if answer.mark == LIFELINE:
            return
        self._requests += 1
        self._tokens += (answer.prompt_tokens or answer.expected_prompt_tokens or 0) + (
            answer.completion_tokens or 0
        )

    def _say(self, line: Text) -> None:
        if self._live is not None:
            self._lines.append(line)
        elif not self._is_quiet:
            self._console.print(line, soft_wrap=True, highlight=False)

    def picture(self) -> RenderableType:
        """Return what a terminal shows now."""
        return Group(*self._lines, self.progress())

    def progress(self) -> Text:
        """Return the line that says how far it is."""
        tokens = f"{self._tokens:,}"
        requests = counted(self._requests, "request", "requests")
        if self._budget is not None:
            tokens += f" of {self._budget.prompt_tokens + self._budget.completion_tokens:,}"
            requests = f"{self._requests:,} of {self._budget.requests:,} requests"
        doing = "starting" if self._scenario is None else plain(self._scenario)
        return Text.assemble((doing, "bold"), f"  {requests}, {tokens} tokens, {self._seconds:.0f} s")


def _line_of(event: AnyEvent) -> Text | None:
    """Return the line that an event is worth, if it is worth one."""
    if isinstance(event, ScenarioEnded):
        verdict = (event.verdict.value, VERDICT_STYLES[event.verdict])
        return Text.assemble(f"{plain(event.scenario)}: ", verdict, f": {plain(event.why)}")
    if isinstance(event, FindingMade):
        return finding_line(event)
    if isinstance(event, Noted) and event.is_warning:
        return Text.assemble(("warning: ", "yellow"), plain(event.text))
    return None
