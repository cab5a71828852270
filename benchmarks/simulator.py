"""How fast the simulator is: simulated hours a real minute, and requests beside the real engine's rate.

Rules: hours are those of ordinary seeds, weather and all. The comparison asks the same number of requests of
the same length as the serving benchmark, sixteen at once, in calm weather, in this process; the real engine's
rate is that of the serving benchmark's latest full run on this machine, and without one there is none.

Run it: python -m benchmarks.simulator [--quick]
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import Spread

from kvfence.protocol import CORRECT, DecodeConfig, PrefillConfig, RouterConfig
from kvfence.protocol.errors import invariant
from kvfence.simulation import Run, Swarm, draw_swarm
from kvfence.simulation.swarm import MS, SECOND
from kvfence.simulation.workload import Arrival
from kvfence.world import Ask, WorldConfig

SERVING = Path(__file__).resolve().parent / "out" / "serving.json"
PROMPT_TOKENS, ANSWER_TOKENS, PAGE_TOKENS, ROWS = 128, 48, 16, 16
PAGES = ROWS * (PROMPT_TOKENS + ANSWER_TOKENS) // PAGE_TOKENS * 2
TARGET_TIMES = 20


def same_load(requests: int) -> Swarm:
    """The serving benchmark's requests, for a calm simulated deployment of one node a role."""
    arrivals = tuple(
        Arrival(number // ROWS * SECOND, Ask(number, "tenant", _prompt(number), ANSWER_TOKENS), 0)
        for number in range(1, requests + 1)
    )
    world = WorldConfig(
        page_tokens=PAGE_TOKENS,
        prefill_pages=PAGES,
        decode_pages=PAGES,
        decode_spare_pages=ROWS,
        chunk_tokens=1_024,
        rows_max=ROWS,
        router=RouterConfig(context_tokens=2_048),
        prefill=PrefillConfig(page_bytes=1, batch_bytes=8),
        decode=DecodeConfig(),
    )
    return Swarm(
        seed=0,
        world=world,
        arrivals=arrivals,
        features=frozenset(),
        gusts=(),
        calm_us=arrivals[-1].at_us,
        latency_us=MS,
        landing_us=MS,
        slowness=0.0,
        compute_us=10 * MS,
        loss=0.0,
        repeat=0.0,
        failure=0.0,
    )


def _prompt(number: int) -> tuple[int, ...]:
    return tuple(10_000 + number * PROMPT_TOKENS + place for place in range(PROMPT_TOKENS))


def _requests_per_second(requests: int) -> float:
    begun = time.perf_counter()
    outcome = Run(same_load(requests), CORRECT).go()
    seconds = time.perf_counter() - begun
    invariant(outcome.is_clean, f"a calm run is clean, not {outcome.findings}")
    invariant(outcome.ends == {"length": requests}, f"every request is answered, not {outcome.ends}")
    return requests / seconds


def _hours_per_minute(seeds: range) -> tuple[float, float]:
    """Simulated hours a real minute, and happenings a second, of ordinary runs."""
    begun, virtual_us, happenings = time.perf_counter(), 0, 0
    for seed in seeds:
        outcome = Run(draw_swarm(seed)).go()
        virtual_us, happenings = virtual_us + outcome.virtual_us, happenings + outcome.happenings
    seconds = time.perf_counter() - begun
    return virtual_us / 3.6e9 / (seconds / 60), happenings / seconds


def engine_requests_per_second(path: Path = SERVING) -> float | None:
    """The real engine's rate at sixteen at once, as the serving benchmark last saw it here."""
    if not path.exists():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))["result"]
    found = [load for load in result.get("loads", ()) if load["concurrency"] == ROWS]
    return found[0]["tokens_per_second"]["median"] / result["answer_tokens"] if found else None


def run(*, quick: bool) -> dict[str, Any]:
    """Measure."""
    repeats, seeds, requests = (2, 20, ROWS) if quick else (5, 200, 4 * ROWS)
    rates = [_requests_per_second(requests) for _ in range(repeats)]
    hours = [_hours_per_minute(range(turn * seeds, (turn + 1) * seeds)) for turn in range(repeats)]
    engine = engine_requests_per_second()
    spread = Spread.of(rates)
    return {
        "name": "simulator",
        "requests": requests,
        "target_times": TARGET_TIMES,
        "requests_per_second": _as_dict(spread),
        "engine_requests_per_second": engine,
        "times_engine": None if engine is None else spread.median / engine,
        "hours_per_minute": _as_dict(Spread.of([one for one, _ in hours])),
        "happenings_per_second": _as_dict(Spread.of([one for _, one in hours])),
    }


def _as_dict(spread: Spread) -> dict[str, float]:
    return {"least": spread.least, "median": spread.median, "most": spread.most, "count": spread.count}


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few seeds")
    print(json.dumps(run(quick=parser.parse_args().quick), indent=1))


if __name__ == "__main__":
    main()
