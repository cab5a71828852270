"""Real nodes under random schedules write traces that conform, whatever the weather does to them."""

import json

import pytest
from tests.serving.seam.weather import CROWDED_STORM, SLEEPY_WRITERS, STORM
from tests.serving.seam.world import World

from kvfence.kv import FenceLevel
from kvfence.protocol import Decisions
from kvfence.protocol.words import Role
from kvfence.serving.trace_lines import TraceLines, keep_step
from kvfence.verification import ViolationKind, render_trace
from kvfence.verification.conformance import TraceCheck
from kvfence.verification.conformance_steps import Place, read_line

STEPS = 1_200


class TracedWorld(World):
    """A world in which each incarnation keeps its trace, as lines in the order of events."""

    def __init__(self, *args, **kwargs):
        self.lines, self._makers = [], {}
        super().__init__(*args, **kwargs)

    def _start(self, name, role):
        super()._start(name, role)
        seat = next(reversed(self.seats.values()))
        lines, core = TraceLines(seat.me, role), seat.core
        self._makers[seat.me] = lines
        ledger = None if role is Role.ROUTER else core.ledger
        self.lines.append(lines.start(core, ledger, {"fence": self.level.value}))

        def took(event, said):
            self.lines.append(lines.step(keep_step(core, event, said, self.now)))

        (seat.node._driver if role is Role.ROUTER else seat.node.driver).observer = took

    def report(self):
        """Those that run stop in order; what was killed leaves a prefix."""
        check = TraceCheck()
        ends = [self._makers[peer].end() for peer in self.seats]
        for number, line in enumerate([*self.lines, *ends], start=1):
            check.take(read_line(Place("seam", number), json.dumps(line).encode()))
        return check.report()


def lived(seed, level, weather, **kwargs):
    world = TracedWorld(seed, level, weather, **kwargs)
    try:
        world.run(STEPS)
        if not kwargs:
            world.settle()
    except AssertionError:
        assert kwargs, "a healthy world has no fault"
    finally:
        world.close()
    return world.report()


@pytest.mark.parametrize(
    ("seed", "level", "weather"),
    [
        (1, FenceLevel.SEALED, STORM),
        (2, FenceLevel.PARANOID, CROWDED_STORM),
        (3, FenceLevel.OFF, CROWDED_STORM),
        (4, FenceLevel.CONTRACT, SLEEPY_WRITERS),
    ],
)
def test_traces_of_the_seam_conform(seed, level, weather):
    report = lived(seed, level, weather)
    assert report.conforms, render_trace(report)
    assert len([node for node in report.nodes if node.is_whole]) >= 3
    assert sum(node.steps for node in report.nodes) > 500


class TimeIsProof(Decisions):
    """Law 4 broken: what should have ended by now is taken for ended."""

    def deadline_is_quiet(self):
        return True

    def abort_is_quiet(self):
        return True


def test_the_trace_of_a_world_without_law_4_does_not_conform():
    reports = [
        lived(seed, FenceLevel.SEALED, SLEEPY_WRITERS, decisions=TimeIsProof(), checks_laws=False)
        for seed in range(3)
    ]
    found = {violation.kind for report in reports for violation in report.violations}
    assert {ViolationKind.FREED, ViolationKind.CORE} <= found
