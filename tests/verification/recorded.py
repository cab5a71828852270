"""Traces of played deployments: the joined rig of the protocol's tests, keeping what a node would write.

The lines are made by the code that makes a node's; only the file and its thread are left out.
"""

import json

from tests.protocol.rig import Joined

from kvfence.protocol.words import Role
from kvfence.serving.trace_lines import TraceLines, keep_step
from kvfence.verification.conformance import TraceCheck
from kvfence.verification.conformance_steps import Place, read_line


class Recorded(Joined):
    """A rig in which every incarnation keeps its trace. `lines` are plain data, in the order of events."""

    def __init__(self, **kwargs):
        self.lines, self._makers = [], {}
        super().__init__(**kwargs)

    def boot(self, name):
        peer = super().boot(name)
        seat = self.seats[name]
        self._makers[peer] = TraceLines(peer, seat.role)
        ledger = None if seat.role is Role.ROUTER else seat.core.ledger
        self.lines.append(self._makers[peer].start(seat.core, ledger, {"fence": "sealed"}))
        return peer

    def carry_out(self, name, out):
        seat = self.seats[name]
        event = next(what for who, way, what in reversed(self.log) if way == "<<" and who == name)
        kept = keep_step(seat.core, event, out, 0.0)
        self.lines.append(self._makers[seat.peer].step(kept))
        super().carry_out(name, out)

    def stop(self):
        """Every node that runs ends in order; the lines of all."""
        running = [seat.peer for seat in self.seats.values()]
        return [*self.lines, *(self._makers[peer].end() for peer in running)]


def check(lines):
    """Check lines that are plain data, or bytes as they stand in a file."""
    found = TraceCheck()
    for number, line in enumerate(lines, start=1):
        data = line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode()
        read = read_line(Place("trace", number), data)
        if read is not None:
            found.take(read)
    return found.report()


def kinds(report):
    """What kinds of violations there are."""
    return {violation.kind for violation in report.violations}
