"""The lines of one node's trace, as plain data: the first, one a step, the last.

Rules: steps are numbered from 1 without a gap, the first line is step 0. What a line shows of a step is said
in `kvfence.protocol.trace`. A step can be kept for a while before its line is made: it is immutable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kvfence.protocol.ledger import PageLedger
from kvfence.protocol.tables import Transition
from kvfence.protocol.trace import show_fields, show_step
from kvfence.protocol.vocabulary import Command, Event
from kvfence.protocol.words import LeaseId, Peer, Role

Line = dict[str, Any]


class Traced(Protocol):
    """A core as far as a trace looks at it."""

    @property
    def trail(self) -> Sequence[Transition]:
        """The rows that the last step took."""
        ...

    @property
    def config(self) -> object:
        """What it was made with."""
        ...


@dataclass(frozen=True, slots=True)
class TracedStep:
    """One step as it waits for its line; `published` are pages that the prefix index took, by lease."""

    at_ms: float
    event: Event
    trail: Sequence[Transition]
    commands: Sequence[Command]
    published: Mapping[LeaseId, frozenset[int]]


def keep_step(core: Traced, event: Event, commands: Sequence[Command], at_ms: float) -> TracedStep:
    """Return the step that the core has just taken. Cheap: nothing is copied."""
    return TracedStep(at_ms, event, core.trail, commands, _published(core))


class TraceLines:
    """Makes the lines of one incarnation, in order."""

    def __init__(self, me: Peer, role: Role) -> None:
        self._name = {"node": me.node, "incarnation": str(me.incarnation), "role": role.value}
        self.steps = 0

    def start(self, core: Traced, ledger: PageLedger | None, facts: Mapping[str, Any]) -> Line:
        """Return the first line: what the core was made with, and facts as they are."""
        pages = {} if ledger is None else {"pages": ledger.pages, "spare_pages": ledger.spare_pages}
        return {**self._name, "step": 0, "start": {"config": show_fields(core.config), **pages, **facts}}

    def step(self, step: TracedStep) -> Line:
        """Return the next line."""
        self.steps += 1
        event, of, rows, commands = show_step(step.event, step.trail, step.commands)
        line = {
            **self._name,
            "step": self.steps,
            "ms": round(step.at_ms, 3),
            "event": event,
            "of": of,
            "rows": rows,
            "commands": commands,
        }
        if step.published:
            line["published"] = {
                f"{lease.incarnation}.{lease.sequence}": sorted(pages)
                for lease, pages in step.published.items()
            }
        return line

    def end(self) -> Line:
        """Return the last line of a node that stopped in order."""
        return {**self._name, "step": self.steps + 1, "end": "stopped"}


def _published(core: Traced) -> dict[LeaseId, frozenset[int]]:
    """Pages that the prefix index took in this step: it is no part of the core, so no row can tell."""
    leases = getattr(core, "leases", {})
    found = {}
    for row in core.trail:
        pages = getattr(leases.get(row.key), "published", None)
        if pages and row.action in ("start", "take_last_chunk") and isinstance(row.key, LeaseId):
            found[row.key] = pages
    return found
