"""What `kvfence verify` does and shows: an exploration with its figures, a trace, the table of scopes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from kvfence.cli.verify_record import keep
from kvfence.protocol import Decisions
from kvfence.protocol.errors import OperatorError
from kvfence.protocol.tables import DECODE, PREFILL, ROUTER
from kvfence.verification import (
    SCOPES,
    Counterexample,
    Homing,
    Level,
    Limits,
    Report,
    Scope,
    Walks,
    Why,
    search,
    tell,
)
from kvfence.verification.catalogue import UNSEEN
from kvfence.verification.conformance import check_trace, render_trace
from kvfence.world import LEAKS, Kind
from kvfence.world.diagram import draw_svg, draw_text

FOUND = 1
INCONCLUSIVE = 5


def check(console: Console, paths: list[Path]) -> int:
    """Hold traces against tables, laws and cores."""
    for path in paths:
        if not path.is_file():
            raise OperatorError(f"there is no trace {path}: `kvfence serve --trace FILE` writes one.")
    report = check_trace(paths)
    console.print(render_trace(report), soft_wrap=True, markup=False)
    if not report.conforms:
        return FOUND
    return INCONCLUSIVE if report.unheard else 0


@dataclass(frozen=True, slots=True)
class Exploration:
    """How scopes are searched and shown. `svg` is drawn into, if something is found.

    `record` is a file in which outcomes are kept, scope by scope.
    """

    console: Console
    decisions: Decisions
    jobs: int
    limits: Limits
    svg: Path | None = None
    record: Path | None = None
    leaks: bool = False  # nothing else ends a search

    def explore(self, names: Sequence[str]) -> int:
        """Search scopes one after the other; return the worst exit code."""
        codes, states, seconds = [], 0, 0.0
        for name in names:
            report = self._search(SCOPES[name])
            codes.append(self._judge(report))
            if self.record is not None:
                keep(self.record, report)
            states, seconds = states + report.states, seconds + report.seconds
        if len(names) > 1:
            rate = states / max(seconds, 1e-9)
            words = (
                f"{len(names)} scopes: {states:,} distinct states in {seconds:,.1f} s, {rate:,.0f} a second"
            )
            self.console.print(words, soft_wrap=True)
        return next((code for code in (FOUND, INCONCLUSIVE) if code in codes), 0)

    def _search(self, scope: Scope) -> Report:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self.console, transient=True, auto_refresh=False) as bar:
            task = bar.add_task(scope.name)

            def show(level: Level) -> None:
                rate = level.states / max(level.seconds, 1e-9)
                words = (
                    f"{scope.name}: depth {level.depth}, {level.states:,} states, {level.frontier:,} in it"
                )
                bar.update(task, description=f"{words}, {rate:,.0f} a second", refresh=True)

            return search(
                scope,
                self.decisions,
                limits=self.limits,
                jobs=self.jobs,
                ignored=frozenset(Kind) - LEAKS if self.leaks else frozenset(),
                ways_home=not self.leaks,
                progress=show,
            )

    def _judge(self, report: Report) -> int:
        if report.counterexample is not None:
            self._show_run(report.counterexample)
        _show(self.console, report)
        if report.why is Why.FOUND:
            return FOUND
        if report.homing is not None:
            return self._show_homing(report.homing)
        if report.walks is not None:
            return self._show_walks(report.walks)
        return 0 if report.why in (Why.CLOSED, Why.DEPTH) else INCONCLUSIVE

    def _show_homing(self, homing: Homing) -> int:
        if homing.counterexample is not None:
            self._show_run(homing.counterexample)
        if homing.stranded is not None:
            self._say(f"{homing.stranded_states:,} of them have no way home without more weather")
            return FOUND
        self._say("from each of them there is a way home without more weather")
        free = f"{homing.rounds:,} components of free moves go round away from home"
        if homing.livelock is not None:
            self._say(f"{free}; a fair run can stay in {homing.kept:,} of them")
            return FOUND
        if homing.rounds:
            ended = f"fairness ends {homing.left:,} of them, a deadline {homing.timed:,}"
            self._say(f"{free}; {ended}: no livelock")
        else:
            self._say("no free moves go round away from home: no livelock")
        return 0

    def _show_walks(self, walks: Walks) -> int:
        if walks.lost is not None:
            self._show_run(walks.lost)
            return FOUND
        which = f"{walks.walked:,} of the {walks.states:,} states of the last layer"
        self._say(f"walks of free moves come home from {which}, in {walks.longest:,} steps at most")
        return 0

    def _say(self, words: str) -> None:
        self.console.print(words, soft_wrap=True)

    def _show_run(self, found: Counterexample) -> None:
        moments = tell(found, self.decisions)
        self.console.print(Text(draw_text(moments)), soft_wrap=True)
        for finding in found.findings:
            words = f"{finding.kind.value}, {finding.node.node}: {finding.what}"
            self.console.print(Text(words), style="bold red", soft_wrap=True)
        if self.svg is not None:
            title = f"kvfence verify --scope {found.scope.name}"
            self.svg.write_text(draw_svg(moments, title), encoding="utf-8")
            self.console.print(f"drawn in {self.svg}", soft_wrap=True)


def _show(console: Console, report: Report) -> None:
    rows = sum(len(table.rows) for table in (ROUTER, PREFILL, DECODE))
    console.print(f"scope {report.scope.name}: {report.scope.what}", soft_wrap=True)
    console.print(f"{_ended(report)}; depth {report.depth}", soft_wrap=True)
    console.print(
        f"{report.states:,} distinct states, {report.transitions:,} transitions, "
        f"{report.rows_taken} of {rows} rows taken"
    )
    console.print(
        f"{report.seconds:.1f} s, {report.states / max(report.seconds, 1e-9):,.0f} states a second; "
        f"{report.stored_bytes / report.states:.0f} bytes a state kept, {report.peak_mib:,} MiB at most"
    )


def _ended(report: Report) -> str:
    return {
        Why.CLOSED: "closed: every state that can be reached was visited",
        Why.FOUND: "found what must never happen, in the fewest steps",
        Why.DEPTH: "not closed: searched to the depth that the scope states",
        Why.STATES: "not closed: stopped at --max-states",
        Why.MEMORY: "not closed: stopped at --memory-mib",
    }[report.why]


def scopes_table() -> Table:
    """All named scopes."""
    table = Table("scope", "closes", "what", box=None, pad_edge=False, header_style="bold")
    for scope in SCOPES.values():
        table.add_row(scope.name, _closes(scope), scope.what)
    return table


def _closes(scope: Scope) -> str:
    if scope.depth is not None:
        return f"to depth {scope.depth}"
    return "not seen yet" if scope.name in UNSEEN else "yes"
