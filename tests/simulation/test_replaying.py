"""A script is played again without its seed; what has become impossible is skipped; findings come back."""

import pytest

from kvfence.faults import Layer, faulty_decisions
from kvfence.protocol import CORRECT, Decisions
from kvfence.simulation.harsh import draw_harsh
from kvfence.simulation.matrix import DETECTING
from kvfence.simulation.replaying import is_stuck, replay, settle, tell, world_of
from kvfence.simulation.run import Run
from kvfence.simulation.shrinking import shrink
from kvfence.simulation.swarm import draw_swarm
from kvfence.world import Kind
from kvfence.world import happenings as h
from kvfence.world.diagram import draw_text


class DirtyPages(Decisions):
    def zeroes_added_pages(self) -> bool:
        return False


class NeverGivesBack(Decisions):
    def sources_are_quiet(self, steps: int, batches_reading: int) -> bool:
        return False


class DoneTooEarly(Decisions):
    def is_written(self, posted_pages: int, pages: int, batches_in_flight: int) -> bool:
        return posted_pages == pages


def first_with(decisions: Decisions, kind: Kind):
    for seed in range(200):
        swarm = draw_swarm(seed)
        outcome = Run(swarm, decisions).go()
        if outcome.findings and outcome.findings[0].kind is kind:
            return swarm, outcome.script
    raise AssertionError(f"no {kind.value}")


CASES = [(DirtyPages(), Kind.DIRTY_PAGE), (NeverGivesBack(), Kind.NOT_HOME), (DoneTooEarly(), Kind.FENCE)]


@pytest.mark.parametrize(("decisions", "kind"), CASES, ids=lambda case: type(case).__name__)
def test_a_failing_script_fails_again_and_shrinks(decisions, kind):
    swarm, script = first_with(decisions, kind)
    assert replay(swarm, decisions, script, kind) is not None
    short = shrink(swarm, decisions, script, kind)
    assert len(short) < len(script)
    assert replay(swarm, decisions, short, kind) == short
    assert sum(isinstance(happening, h.Submit) for _, happening in short) <= 3
    assert replay(swarm, CORRECT, short, kind) is None


def test_no_happening_of_a_shrunk_script_can_be_left_out():
    swarm, script = first_with(DirtyPages(), Kind.DIRTY_PAGE)
    short = shrink(swarm, DirtyPages(), script, Kind.DIRTY_PAGE)
    for place in range(len(short)):
        shorter = replay(swarm, DirtyPages(), (*short[:place], *short[place + 1 :]), Kind.DIRTY_PAGE)
        assert shorter is None or len(shorter) >= len(short)


def test_a_script_that_does_not_fail_stays_as_it_is():
    run = Run(draw_swarm(3))
    run.go()
    script = tuple(run.script)
    assert shrink(draw_swarm(3), CORRECT, script, Kind.FOREIGN_READ) == script


def test_a_finding_is_told_and_drawn():
    swarm, script = first_with(DirtyPages(), Kind.DIRTY_PAGE)
    moments = tell(swarm, DirtyPages(), shrink(swarm, DirtyPages(), script, Kind.DIRTY_PAGE))
    assert any("dirty page" in word for word in moments[-1].found)
    assert "!!" in draw_text(moments)
    swarm, script = first_with(NeverGivesBack(), Kind.NOT_HOME)
    assert any("not home" in word for word in tell(swarm, NeverGivesBack(), script)[-1].found)


def test_what_is_left_over_settles_in_calm_weather():
    for seed in range(20):
        run = Run(draw_swarm(seed))
        run.go()
        world = world_of(draw_swarm(seed), CORRECT)
        for _, happening in run.script[: len(run.script) // 2]:
            world.perform(happening)
        assert not is_stuck(world), seed
        settle(world)
        assert not world.findings


def first_foreign_read(decisions: Decisions, seeds: range):
    for seed in seeds:
        swarm = draw_harsh(seed)
        run = Run(swarm, decisions, stops_at=frozenset((Kind.FOREIGN_READ,)), checks_laws=False)
        if Kind.FOREIGN_READ in {finding.kind for finding in run.go().findings}:
            return swarm, tuple(run.script)
    raise AssertionError("no foreign read")


def test_a_run_without_its_guard_is_played_again_without_it():
    fault, layers_off = "transfer-outlives-pages/closed-before-quiet", frozenset(DETECTING)
    decisions = faulty_decisions((fault,), layers_off)()
    swarm, script = first_foreign_read(decisions, range(42, 60))
    assert replay(swarm, decisions, script, Kind.FOREIGN_READ) == script
    guarded = faulty_decisions((fault,), layers_off - {Layer.GUARD})()
    assert replay(swarm, guarded, script, Kind.FOREIGN_READ) is None
