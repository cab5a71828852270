"""Trace conformance: the event log of a real run is a path of the shipped tables, and keeps the laws.

    report = check_trace([Path("run.jsonl")])
    print(render_trace(report))

Every step of every node is looked at from three sides: its rows against the table (`conformance_rows`), its
pages, promises and requests against the laws (`conformance_decode`, `_prefill`, `_requests`), and the whole
step against the shipped core that is told the same (`conformance_core`). Then what nodes received is held
against what others sent (`conformance_messages`).

A node that was killed leaves a trace without a last line: what there is of it must conform all the same.
It says nothing about bytes, the model's steps or HTTP, and believes what a trace says of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvfence.protocol.words import Peer, Role
from kvfence.verification.conformance_core import CoreCheck
from kvfence.verification.conformance_decode import DecodePageCheck
from kvfence.verification.conformance_messages import MessageCheck
from kvfence.verification.conformance_prefill import PrefillPageCheck
from kvfence.verification.conformance_requests import RequestCheck
from kvfence.verification.conformance_rows import Found, RowCheck
from kvfence.verification.conformance_steps import (
    Line,
    Place,
    Start,
    Step,
    Stop,
    Strange,
    Torn,
    Violation,
    ViolationKind,
    read_lines,
)

VIOLATIONS_MAX = 100  # kept of each node, and of what is nobody's: the first ones tell the most


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One incarnation in a trace. `is_whole`: its last line is there.

    `stand_ins` counts events for which no table has a row, `left_open` the records (a router's requests, the
    others' leases) that had not come home when the trace ended. `unsafe` names what was switched on or off:
    faults, layers, the fence.
    """

    peer: Peer
    role: Role
    steps: int
    is_whole: bool
    stand_ins: int
    left_open: int
    unsafe: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TraceReport:
    """What was found. `unheard` are incarnations that were heard of, and whose trace is not there."""

    nodes: tuple[NodeReport, ...]
    violations: tuple[Violation, ...]
    torn: int
    unheard: tuple[Peer, ...]

    @property
    def conforms(self) -> bool:
        """Whether the trace has steps, and nothing is wrong with them."""
        return bool(self.nodes) and not self.violations


def check_trace(paths: Iterable[Path]) -> TraceReport:
    """Check files as one trace, of one or more deployments. Raises OperatorError where one cannot be read."""
    check = TraceCheck()
    for line in read_lines(paths):
        check.take(line)
    return check.report()


class TraceCheck:
    """Takes lines one by one, in the order in which they were written, then reports."""

    def __init__(self) -> None:
        self._nodes: dict[Peer, _Node] = {}
        self._messages = MessageCheck()
        self._found: list[Violation] = []
        self._counts: Counter[str] = Counter()
        self._torn: list[Torn] = []

    def take(self, line: Line) -> None:
        """Look at one line."""
        match line:
            case Torn():
                self._torn.append(line)
            case Strange():
                self._note(Violation(ViolationKind.UNREADABLE, line.place, "?", line.why))
            case Start():
                self._begin(line)
            case Step() | Stop():
                node = self._nodes.get(line.peer)
                if node is None:
                    self._report(
                        line.place, line.peer, [(ViolationKind.ORDER, "its first line is not there")]
                    )
                    self._nodes[line.peer] = node = _Node(None, line.number - 1)
                self._report(line.place, line.peer, node.take(line))
                if isinstance(line, Step):
                    self._messages.take(line)

    def report(self) -> TraceReport:
        """Say what was found, once all lines were taken."""
        self._judge_torn()
        whole = {peer: node.is_whole for peer, node in self._nodes.items()}
        for violation in self._messages.violations(whole):
            self._note(violation)
        nodes = tuple(
            node.report(peer) for peer, node in sorted(self._nodes.items()) if node.start is not None
        )
        unheard = tuple(sorted(self._messages.senders - whole.keys()))
        found = sorted(self._found, key=lambda violation: (violation.place.file, violation.place.line))
        return TraceReport(nodes, tuple(found), len(self._torn), unheard)

    def _begin(self, line: Start) -> None:
        if line.peer in self._nodes:
            self._report(line.place, line.peer, [(ViolationKind.ORDER, "its first line comes twice")])
            return
        try:
            self._nodes[line.peer] = _Node(line, 0)
        except ValueError as error:
            self._nodes[line.peer] = _Node(None, 0)
            self._report(line.place, line.peer, [(ViolationKind.UNREADABLE, str(error))])

    def _judge_torn(self) -> None:
        """A torn line is the last word of a node that was killed: one each, and nothing after it."""
        cut_short = {peer for peer, node in self._nodes.items() if not node.is_whole}
        for line in self._torn:
            theirs = {line.peer} & cut_short if line.peer is not None else cut_short
            if theirs:
                cut_short.discard(min(theirs))
            else:
                why = "the line is not whole, and no node was ended in the midst of it"
                self._note(Violation(ViolationKind.UNREADABLE, line.place, "?", why))

    def _report(self, place: Place, peer: Peer, found: Iterable[tuple[ViolationKind, str]]) -> None:
        for kind, why in found:
            self._note(Violation(kind, place, peer.node, why))

    def _note(self, violation: Violation) -> None:
        self._counts[violation.node] += 1
        if self._counts[violation.node] <= VIOLATIONS_MAX:
            self._found.append(violation)


class _Node:
    """What is known of one incarnation while its lines are read. Without `start` it is only counted."""

    def __init__(self, start: Start | None, steps: int) -> None:
        self.start, self.steps, self.is_whole = start, steps, False
        self._rows = None if start is None else RowCheck(start.role)
        self._checks = () if start is None else tuple(_checks(start))

    def take(self, line: Step | Stop) -> Found:
        if self.is_whole:
            yield ViolationKind.ORDER, f"step {line.number} comes after its last line"
        elif line.number != self.steps + 1:
            yield ViolationKind.ORDER, f"step {line.number} follows step {self.steps}"
        if isinstance(line, Stop):
            self.is_whole = True
            return
        self.steps = line.number
        if self._rows is not None:
            yield from self._rows.take(line)
        for check in self._checks:
            yield from check.take(line)

    def report(self, peer: Peer) -> NodeReport:
        stand_ins = 0 if self._rows is None else self._rows.stand_ins
        role = Role.ROUTER if self.start is None else self.start.role
        left_open = 0 if self._rows is None else self._rows.left_open
        unsafe = () if self.start is None else tuple(_unsafe(self.start.facts))
        return NodeReport(peer, role, self.steps, self.is_whole, stand_ins, left_open, unsafe)


def _unsafe(facts: Mapping[str, Any]) -> Iterator[str]:
    if facts.get("fence") == "off":
        yield "the fence off"
    yield from (f"fault {name}" for name in facts.get("faults") or ())
    yield from (f"without {name}" for name in facts.get("without") or ())


_Check = CoreCheck | RequestCheck | DecodePageCheck | PrefillPageCheck


def _checks(start: Start) -> Iterator[_Check]:
    core = CoreCheck(start)
    config: Mapping[str, int] = start.facts["config"]
    if start.role is Role.ROUTER:
        yield RequestCheck()
    elif start.role is Role.DECODE:
        yield DecodePageCheck()
    else:
        yield PrefillPageCheck(config["page_tokens"])
    yield core


def render_trace(report: TraceReport) -> str:
    """Return the report as lines for people."""
    lines = [f"{_name(node.peer)} ({node.role.value}): {_words(node)}" for node in report.nodes]
    lines += [f"no trace of {_name(peer)}: what it sent cannot be checked" for peer in report.unheard]
    if report.torn:
        lines.append(f"{report.torn} lines were cut short with the nodes that wrote them")
    for found in report.violations:
        lines.append(f"{found.place.file}:{found.place.line}: {found.node}: {found.kind.value}: {found.why}")
    if report.conforms and report.unheard:
        lines.append("What there is of the trace conforms, but not every node that spoke is in it.")
    elif report.conforms:
        lines.append("The trace conforms: it is a path of the tables.")
    elif report.violations:
        lines.append(f"The trace does not conform: {len(report.violations)} violations.")
    else:
        lines.append("There is no trace in this: no node has written a line.")
    return "\n".join(lines)


def _name(peer: Peer) -> str:
    return f"{peer.node}/{peer.incarnation}"


def _words(node: NodeReport) -> str:
    words = [f"{node.steps:,} steps", "whole" if node.is_whole else "a prefix: it was ended, or runs"]
    if node.stand_ins:
        words.append(f"{node.stand_ins} events without a row")
    words += node.unsafe
    if node.left_open:
        words.append(f"{node.left_open} {'requests' if node.role is Role.ROUTER else 'leases'} not home")
    return ", ".join(words)
