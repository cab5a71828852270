"""A run of a whole deployment: clean where nothing is wrong, the same again from the same seed, anywhere."""

import hashlib
import os
import subprocess
import sys

import pytest

from kvfence.protocol import CORRECT, Decisions
from kvfence.simulation.run import Run
from kvfence.simulation.swarm import draw_swarm
from kvfence.world import Kind

REPLAYED = (3, 55, 74)
HASHING = """
import hashlib
from kvfence.simulation.run import Run
from kvfence.simulation.swarm import draw_swarm
for seed in {seeds}:
    run = Run(draw_swarm(seed))
    outcome = run.go()
    print(hashlib.sha256(repr((run.script, outcome.ends, outcome.probes)).encode()).hexdigest())
"""


def log_of(seed: int) -> str:
    run = Run(draw_swarm(seed))
    outcome = run.go()
    return hashlib.sha256(repr((run.script, outcome.ends, outcome.probes)).encode()).hexdigest()


def test_the_correct_protocol_is_clean_and_every_request_ends_for_a_stated_reason(outcomes):
    ends: dict[str, int] = {}
    for outcome in outcomes:
        assert outcome.is_clean, (outcome.seed, outcome.findings)
        assert not outcome.catches
        assert sum(outcome.ends.values()) == outcome.requests
        for name, count in outcome.ends.items():
            ends[name] = ends.get(name, 0) + count
    assert "never ended" not in ends
    assert {"length", "stop", "client_gone", "deadline", "refused: context_length_exceeded"} <= set(ends)


@pytest.mark.parametrize("hash_seed", ["1", "77"])
def test_a_seed_replays_to_the_byte_in_another_process(hash_seed):
    printed = subprocess.run(
        [sys.executable, "-c", HASHING.format(seeds=REPLAYED)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.split() == [log_of(seed) for seed in REPLAYED]


def test_time_never_goes_back():
    run = Run(draw_swarm(3))
    run.go()
    times = [when for when, _ in run.script]
    assert times == sorted(times)


class NeverGivesBack(Decisions):
    def sources_are_quiet(self, steps: int, batches_reading: int) -> bool:
        return False


def test_what_never_comes_home_is_found():
    found = [Run(draw_swarm(seed), NeverGivesBack()).go() for seed in range(20)]
    kinds = {finding.kind for outcome in found for finding in outcome.findings}
    assert Kind.NOT_HOME in kinds


class DirtyPages(Decisions):
    def zeroes_added_pages(self) -> bool:
        return False


def test_a_run_ends_at_its_first_finding_unless_it_is_told_to_go_on():
    swarm = draw_swarm(3)
    short, long = Run(swarm, DirtyPages()).go(), Run(swarm, DirtyPages(), stops_at=frozenset()).go()
    assert [finding.kind for finding in short.findings] == [Kind.DIRTY_PAGE] * len(short.findings)
    assert long.happenings > short.happenings
    assert short.script
    assert not Run(swarm, CORRECT).go().script
