"""Some seeds of the correct protocol, run once for all tests that look at them."""

import pytest

from kvfence.simulation.outcome import Outcome
from kvfence.simulation.run import Run
from kvfence.simulation.swarm import draw_swarm

SEEDS = 200


@pytest.fixture(scope="session")
def outcomes() -> list[Outcome]:
    return [Run(draw_swarm(seed)).go() for seed in range(SEEDS)]
