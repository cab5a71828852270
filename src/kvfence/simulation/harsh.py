"""Runs that are meant to hurt: a crowd before small pools, writes that stand for seconds, and much weather.

The detection matrix uses them: what is freed too early has a new owner at once, so that a fault shows its
harm within few seeds. They are drawn from a seed like any other run.
"""

from random import Random

from kvfence.protocol import DecodeConfig, PrefillConfig, RouterConfig
from kvfence.simulation.swarm import GUSTS, MS, SECOND, Feature, Swarm
from kvfence.simulation.workload import Arrival, draw_prompt
from kvfence.world import Ask, Piece, WorldConfig

REQUESTS = 40
GAPS_US = (15 * MS, 80 * MS)
PAGE_TOKENS = 2
OPTIONAL = (
    Feature.ABORTS,
    Feature.CRASH_PREFILL,
    Feature.CRASH_DECODE,
    Feature.PAUSES,
    Feature.UNPROVEN_CUTS,
    Feature.STRAYS,
    Feature.PREFIXES,
    Feature.SHORT_TIMERS,
    Feature.LOSS,
)


def draw_harsh(seed: int, wanted: frozenset[Feature] = frozenset()) -> Swarm:
    """Draw such a run, with the weather that is wanted in any case."""
    rng = Random(seed ^ 0xBAD)  # noqa: S311 -- a seed must replay
    features = frozenset(feature for feature in OPTIONAL if rng.random() < 0.4) | {Feature.SLOW_WRITES}
    features |= wanted
    world = _draw_world(rng, features)
    return Swarm(
        seed=seed,
        world=world,
        arrivals=tuple(_draw_arrivals(rng, world)),
        features=features,
        gusts=tuple((feature, 2 * chance) for feature, chance in GUSTS if feature in features),
        calm_us=rng.choice((2 * SECOND, 20 * SECOND)),
        latency_us=rng.choice((200, 2 * MS)),
        landing_us=MS,
        slowness=0.3,
        compute_us=rng.choice((2 * MS, 20 * MS)),
        loss=0.02 if Feature.LOSS in features else 0.0,
        repeat=0.0,
        failure=0.0,
    )


def _draw_world(rng: Random, features: frozenset[Feature]) -> WorldConfig:
    is_short = Feature.SHORT_TIMERS in features
    return WorldConfig(
        prefills=rng.choice((1, 2)),
        page_tokens=PAGE_TOKENS,
        prefill_pages=rng.choice((4, 5, 12)),
        decode_pages=rng.choice((6, 10)),
        decode_spare_pages=2,
        chunk_tokens=4,
        rows_max=4,
        piece=rng.choice((Piece.PAGE, Piece.HALF)),
        has_prefix_cache=Feature.PREFIXES in features,
        router=RouterConfig(context_tokens=24, page_tokens=PAGE_TOKENS),
        prefill=PrefillConfig(
            page_bytes=1,
            page_tokens=PAGE_TOKENS,
            batch_bytes=1,
            batches_in_flight_max=rng.choice((1, 3)),
            batch_ms=rng.choice((50, 10_000)),
        ),
        decode=DecodeConfig(
            page_tokens=PAGE_TOKENS,
            lease_ms=200 if is_short else 300_000,
            close_retry_ms=200,
            quarantine_percent_max=100,
        ),
    )


def _draw_arrivals(rng: Random, world: WorldConfig) -> list[Arrival]:
    at_us, gap_us, arrivals = 0, rng.choice(GAPS_US), []
    limit = min(world.prefill_pages, world.decode_pages) * PAGE_TOKENS
    for request in range(1, REQUESTS + 1):
        at_us += int(rng.expovariate(1 / gap_us))
        is_long = rng.random() < 0.2
        prompt_tokens = rng.randint(limit - 2, limit + 4) if is_long else rng.randint(1, 6)
        prompt = draw_prompt(rng, world, request, prompt_tokens, rng.randint(1, 2))
        ask = Ask(request, f"tenant{request % 2}", prompt, rng.randint(1, 8))
        arrivals.append(Arrival(at_us, ask, 0))
    return arrivals
