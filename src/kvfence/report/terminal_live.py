"""A run in a terminal while it goes on: the scenario, what it used of its budget, verdicts as they fall.

Rules it keeps:
- Where the output is no terminal it is lines alone, one a verdict, finding or warning. An audit has none of
  them before its summary, so that the first line is the summary's.
- What is shown while it runs is gone when it ends; the summary stands in its place.
"""

from collections import deque
from dataclasses import dataclass
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
LINES_SHOWN_MAX = 12  # what fell before is in the summary, and in the file


@dataclass(slots=True)
class Tally:
    """Requests and tokens so far, of a scenario or of the whole run, against what they may use."""

    budget: Cost | None = None
    requests: int = 0
    tokens: int = 0

    def add(self, answer: Answered) -> None:
        """Count one answer; where the server gives no count of the prompt, what was sent."""
        prompt = answer.expected_prompt_tokens if answer.prompt_tokens is None else answer.prompt_tokens
        self.requests += 1
        self.tokens += (prompt or 0) + (answer.completion_tokens or 0)

    def words(self) -> str:
        """Say it, against the budget if there is one."""
        if self.budget is None:
            return f"{counted(self.requests, 'request', 'requests')}, {self.tokens:,} tokens"
        tokens = self.budget.prompt_tokens + self.budget.completion_tokens
        return f"{self.requests:,} of {self.budget.requests:,} requests, {self.tokens:,} of {tokens:,} tokens"


class LiveView:
    """Shows events as they come. A context: what is drawn is cleared on leaving it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._is_quiet = False
        self._scenario: str | None = None
        self._in_scenario = Tally()
        self._in_all = Tally()
        self._seconds = 0.0
        self._lines: deque[Text] = deque(maxlen=LINES_SHOWN_MAX)

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
            self._in_all.budget = event.budget
        elif isinstance(event, ScenarioStarted):
            self._scenario, self._in_scenario = event.scenario, Tally(event.cost)
        elif isinstance(event, Answered) and event.mark != LIFELINE:
            self._in_scenario.add(event)
            self._in_all.add(event)
        elif isinstance(event, ScenarioEnded | RunEnded):
            self._scenario = None
        line = _line_of(event)
        if line is not None:
            self._say(line)
        if self._live is not None:
            self._live.update(self.picture())

    def _say(self, line: Text) -> None:
        if self._is_quiet:
            return
        if self._live is not None:
            self._lines.append(line)
        else:
            self._console.print(line, soft_wrap=True, highlight=False)

    def picture(self) -> RenderableType:
        """Return what a terminal shows now."""
        return Group(*self._lines, self.progress())

    def progress(self) -> Text:
        """Return the line that says how far it is."""
        whole = f"in all {self._in_all.words()}, {self._seconds:.0f} s"
        if self._scenario is None:
            return Text(whole, "dim")
        doing = (plain(self._scenario), "bold")
        return Text.assemble(doing, f": {self._in_scenario.words()}; ", (whole, "dim"))


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
