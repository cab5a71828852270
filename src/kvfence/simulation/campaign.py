"""Many seeds: in this process or in several, until they are done, time is up, or enough was found.

Rules: the outcome of a seed depends on the seed and the faults alone, so that the order in which parts come
back decides nothing but which failures are seen first.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from kvfence.faults import Layer, faulty_decisions
from kvfence.protocol import Decisions
from kvfence.simulation.outcome import Outcome
from kvfence.simulation.run import Run
from kvfence.simulation.swarm import draw_swarm
from kvfence.simulation.tally import Tally

PART = 10  # seeds that a worker takes at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What is to be run. `minutes` None is without end in time."""

    first: int = 0
    seeds: int = 1_000
    minutes: float | None = None
    faults: tuple[str, ...] = ()
    layers_off: frozenset[Layer] = frozenset()
    jobs: int = 1

    def decisions(self) -> Decisions:
        """What the cores ask. Raises OperatorError for a name that is none."""
        return faulty_decisions(self.faults, self.layers_off)()


def run_seed(seed: int, decisions: Decisions) -> Outcome:
    """Run one seed."""
    return Run(draw_swarm(seed), decisions).go()


def run_part(seeds: Sequence[int], campaign: Campaign) -> Tally:
    """Run some seeds of a campaign and add up."""
    decisions, tally = campaign.decisions(), Tally()
    for seed in seeds:
        tally.add(run_seed(seed, decisions))
    return tally


def run_campaign(campaign: Campaign, on_part: Callable[[Tally], None]) -> tuple[Tally, float]:
    """Run all; call `on_part` with the sum so far after each part. Return the sum and the seconds it took."""
    total, begun = Tally(), time.monotonic()
    until = None if campaign.minutes is None else begun + 60 * campaign.minutes
    last = campaign.first + campaign.seeds
    parts = (range(at, min(at + PART, last)) for at in range(campaign.first, last, PART))
    results = _here(parts, campaign) if campaign.jobs == 1 else _in_parallel(parts, campaign)
    for tally in results:
        total.merge(tally)
        on_part(total)
        if until is not None and time.monotonic() >= until:
            results.close()
    total.found.sort()
    return total, time.monotonic() - begun


def _here(parts: Iterator[range], campaign: Campaign) -> Generator[Tally, None, None]:
    for part in parts:
        yield run_part(part, campaign)


def _in_parallel(parts: Iterator[range], campaign: Campaign) -> Generator[Tally, None, None]:
    """Keep two parts a worker under way."""
    with ProcessPoolExecutor(campaign.jobs) as pool:
        running: set[Future[Tally]] = set()
        try:
            while True:
                while len(running) < 2 * campaign.jobs and (part := next(parts, None)) is not None:
                    running.add(pool.submit(run_part, part, campaign))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
