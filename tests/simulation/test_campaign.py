"""Many seeds: the same sums in one process and in several; and the rig finds what fires once in a hundred."""

from hashlib import sha256

from kvfence.protocol import CORRECT, Decisions
from kvfence.simulation.campaign import Campaign, run_campaign, run_seed
from kvfence.simulation.tally import Tally


def run(**what) -> tuple[Tally, list[int]]:
    seen: list[int] = []
    tally, _ = run_campaign(Campaign(**what), lambda so_far: seen.append(so_far.seeds))
    return tally, seen


def test_progress_is_told_after_each_part():
    tally, seen = run(seeds=25)
    assert seen == [10, 20, 25]
    assert tally.seeds == 25
    assert not tally.found


def test_processes_make_no_difference():
    fault = ("unscrubbed-reuse/dirty-added-page",)
    alone, _ = run(seeds=30, first=5, faults=fault)
    parallel, _ = run(seeds=30, first=5, faults=fault, jobs=2)
    assert alone.found
    assert parallel == alone


def test_time_ends_a_campaign():
    tally, _ = run(seeds=1 << 40, minutes=1e-9)
    assert tally.seeds == 10


class DirtyPages(Decisions):
    def zeroes_added_pages(self) -> bool:
        return False


def fires(seed: int) -> bool:
    return sha256(seed.to_bytes(4, "little")).digest()[0] < 3  # about once in a hundred


def test_a_fault_that_fires_once_in_a_hundred_seeds_is_found_at_that_rate():
    """The rig is alive: where the fault fires, and there alone, runs have findings."""
    firing = [seed for seed in range(1_500) if fires(seed)]
    assert 10 <= len(firing) <= 22
    found = [seed for seed in firing if not run_seed(seed, DirtyPages()).is_clean]
    assert len(found) >= len(firing) // 4
    assert all(run_seed(seed, CORRECT).is_clean for seed in firing)
