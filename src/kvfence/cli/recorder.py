"""What an instrument's events go through on the command line: baseline, file, live view, reports.

Rules it keeps: each event is in the file before the next thing happens; reports are written atomically, of
whatever there is; the JSON lines and the reports say the same.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from kvfence.report import Answered, AnyEvent, Cost, Severity
from kvfence.report.atomic import write_atomically
from kvfence.report.baseline import Baseline, read_baseline
from kvfence.report.convert import Options, render
from kvfence.report.exit_codes import OnInconclusive
from kvfence.report.formats import Format
from kvfence.report.jsonl import JsonLinesWriter, read_events
from kvfence.report.terminal import print_summary
from kvfence.report.terminal_live import LiveView


class Recorder:
    """Takes events, keeps them, shows them. A context; files are closed on leaving it."""

    def __init__(
        self,
        *,
        console: Console,
        jsonl: Path | None,
        goes_on: bool = False,
        baseline: Path | None = None,
        is_long: bool = False,
    ) -> None:
        """`goes_on`: the file holds the beginning of this run. Raises OperatorError for files.

        `is_long`: a run without an end, whose events are not kept in memory; it has no report.
        """
        self.console = console
        self.events: list[AnyEvent] = list(read_events(jsonl).events) if jsonl and goes_on else []
        self._baseline = Baseline() if baseline is None else read_baseline(baseline)
        self._path = jsonl
        self._writer = None if jsonl is None else JsonLinesWriter.to(jsonl, goes_on=goes_on, replaces=is_long)
        self._view = LiveView(console)
        self._is_long = is_long

    @property
    def last_s(self) -> float:
        """The time of the last event."""
        return max((event.at_s for event in self.events), default=0.0)

    @property
    def used(self) -> Cost:
        """What all answers together used, as far as the server says."""
        answers = [event for event in self.events if isinstance(event, Answered)]
        return Cost(
            requests=len(answers),
            prompt_tokens=sum(one.prompt_tokens or one.expected_prompt_tokens or 0 for one in answers),
            completion_tokens=sum(one.completion_tokens or 0 for one in answers),
            seconds=round(self.last_s, 3),
        )

    def __enter__(self) -> Self:
        if not self._is_long:  # a picture that grows for ever is none: its lines are printed as they come
            self._view.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._view.__exit__(kind, error, trace)
        if self._writer is not None:
            self._writer.close()

    def take(self, event: AnyEvent) -> None:
        """Take one event in."""
        for judged in self._baseline.judge((event,), datetime.now(UTC).date()):
            if self._writer is not None:
                self._writer.write(judged)
            if not self._is_long:
                self.events.append(judged)
            self._view.show(judged)

    def report(
        self, outputs: Mapping[Format, Path], *, on_inconclusive: OnInconclusive, fail_on: Severity
    ) -> None:
        """Write the reports, and print the summary."""
        events = tuple(self.events)
        source = None if self._path is None else str(self._path)
        options = Options(on_inconclusive=on_inconclusive, fail_on=fail_on, source=source)
        for to, path in outputs.items():
            write_atomically(path, render(events, to, options))
        print_summary(self.console, events)
