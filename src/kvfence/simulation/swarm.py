"""What one run is made of, drawn from its seed: sizes, limits, weather, clients.

Rules: `random.Random(seed)` alone decides; each run turns features off at random, so that what is rare
when everything is on happens often somewhere; times are whole microseconds of virtual time.
"""

from dataclasses import dataclass, replace
from enum import Enum, unique
from random import Random

from kvfence.protocol import DecodeConfig, PrefillConfig, RouterConfig
from kvfence.simulation.workload import Arrival, draw_arrivals
from kvfence.world import Piece, WorldConfig

MS = 1_000
SECOND = 1_000_000


@unique
class Feature(Enum):
    """What can be turned off in a run."""

    ABORTS = "aborts"
    BURSTS = "bursts"
    LOSS = "lost messages"
    REPEATS = "repeated messages"
    LOST_WIRES = "lost connections"
    PARTITIONS = "partitions"
    STALLS = "stalled messages"
    SLOW_WRITES = "slow writes"
    TORN_WRITES = "torn writes"
    FAILED_WRITES = "failed writes"
    CRASH_ROUTER = "crashing routers"
    CRASH_PREFILL = "crashing prefill nodes"
    CRASH_DECODE = "crashing decode nodes"
    PAUSES = "stopped processes"
    FALSE_SUSPICION = "false suspicion"
    STRAYS = "events that should not come"
    UNPROVEN_CUTS = "cuts without proof"
    LIVING_CUTS = "cuts that kill nobody"
    SHORT_TIMERS = "short deadlines"
    TINY_BOUNDS = "tiny bounds"
    PREFIXES = "prefix cache"
    STALE_TIMERS = "timers that ring late"


@dataclass(frozen=True, slots=True)
class Swarm:
    """One run. `gust` is the chance of a piece of weather after each happening, by feature."""

    seed: int
    world: WorldConfig
    arrivals: tuple[Arrival, ...]
    features: frozenset[Feature]
    gusts: tuple[tuple[Feature, float], ...]
    calm_us: int  # when the weather ends
    latency_us: int  # mean, of a message
    landing_us: int  # mean, of a piece of a write
    slowness: float  # share of what takes seconds, where something is slow
    compute_us: int  # mean, of a forward pass
    loss: float
    repeat: float
    failure: float  # of a piece of a write


GUSTS = (
    (Feature.ABORTS, 1 / 40),
    (Feature.LOST_WIRES, 1 / 100),
    (Feature.PARTITIONS, 1 / 150),
    (Feature.CRASH_ROUTER, 1 / 250),
    (Feature.CRASH_PREFILL, 1 / 80),
    (Feature.CRASH_DECODE, 1 / 150),
    (Feature.PAUSES, 1 / 80),
    (Feature.FALSE_SUSPICION, 1 / 120),
    (Feature.STRAYS, 1 / 150),
    (Feature.STALE_TIMERS, 1 / 60),
)
# Drawn after all else, so that a run without them is what it was before there were any.
DRAWN_LAST = (Feature.STALE_TIMERS,)
LAST_SHARE = 0.3  # of runs, for each of them


# What is rare alone and rarer together: some runs have one of these whole.
THEMES = (
    (Feature.SLOW_WRITES, Feature.CRASH_PREFILL, Feature.UNPROVEN_CUTS, Feature.PAUSES),
    (Feature.SLOW_WRITES, Feature.CRASH_DECODE, Feature.CRASH_PREFILL, Feature.BURSTS),
    (Feature.SLOW_WRITES, Feature.ABORTS, Feature.SHORT_TIMERS, Feature.BURSTS),
    (Feature.LOSS, Feature.ABORTS, Feature.STRAYS, Feature.SLOW_WRITES),
    (Feature.PREFIXES, Feature.ABORTS),
)


def draw_swarm(seed: int) -> Swarm:
    """Draw a run from its seed."""
    rng = Random(seed)  # noqa: S311 -- a seed must replay
    features = _draw_features(rng)
    config = _draw_config(rng, features)
    arrivals = draw_arrivals(rng, config, is_bursty=Feature.BURSTS in features)
    strength = rng.choice((0.3, 1.0, 3.0))
    last_us = max(arrival.at_us for arrival in arrivals)
    swarm = Swarm(
        seed=seed,
        world=config,
        arrivals=arrivals,
        features=features,
        gusts=(),
        calm_us=last_us + rng.choice((50 * MS, 500 * MS, 5 * SECOND, 20 * SECOND)),
        latency_us=rng.choice((200, 2 * MS, 20 * MS)),
        landing_us=rng.choice(
            (MS, 10 * MS, 400 * MS) if Feature.SLOW_WRITES in features else (100, MS, 10 * MS)
        ),
        slowness=rng.choice((0.1, 0.3)),
        compute_us=rng.choice((MS, 5 * MS, 30 * MS)),
        loss=rng.choice((0.01, 0.05, 0.2)) if Feature.LOSS in features else 0.0,
        repeat=0.2 if Feature.REPEATS in features else 0.0,
        failure=rng.choice((0.01, 0.1)) if Feature.FAILED_WRITES in features else 0.0,
    )
    features |= {feature for feature in DRAWN_LAST if rng.random() < LAST_SHARE}
    gusts = tuple((feature, chance * strength) for feature, chance in GUSTS if feature in features)
    return replace(swarm, features=features, gusts=gusts)


def _draw_features(rng: Random) -> frozenset[Feature]:
    """A calm run now and then; else each feature is on with a chance that is the run's own."""
    density = rng.choice((0.0, 0.1, 0.25, 0.5, 0.8))
    weather = {feature for feature in Feature if feature not in DRAWN_LAST and rng.random() < density}
    for feature in (Feature.BURSTS, Feature.TORN_WRITES, Feature.PREFIXES, Feature.SHORT_TIMERS):
        if rng.random() < 0.5:
            weather ^= {feature}
    theme = rng.choice(THEMES) if rng.random() < 0.4 else ()
    return frozenset(weather.union(theme))


def _draw_config(rng: Random, features: frozenset[Feature]) -> WorldConfig:
    page_tokens = rng.choice((1, 2, 2, 3, 4))
    prefill_pages, decode_pages = rng.choice((2, 3, 4, 6, 9)), rng.choice((2, 3, 5, 8, 12))
    if Feature.PREFIXES in features:  # cached pages need room beside those in use
        prefill_pages, decode_pages = prefill_pages + rng.choice((0, 8)), max(4, decode_pages)
    smallest = min(prefill_pages, decode_pages) * page_tokens
    context_tokens = rng.choice((smallest, smallest, smallest + rng.randint(1, 2 * smallest), 10 * smallest))
    if rng.random() < 0.1:
        context_tokens = max(2, smallest // 2)
    is_torn = Feature.TORN_WRITES in features
    return WorldConfig(
        routers=rng.choice((1, 1, 1, 2)),
        prefills=rng.choice((1, 1, 2, 3)),
        decodes=rng.choice((1, 1, 1, 2)),
        page_tokens=page_tokens,
        prefill_pages=prefill_pages,
        decode_pages=decode_pages,
        decode_spare_pages=rng.randint(1, 3),
        chunk_tokens=rng.choice((1, page_tokens, 2 * page_tokens, 64)),
        rows_max=rng.randint(1, 4),
        piece=rng.choice((Piece.HALF, Piece.SLOT)) if is_torn else Piece.PAGE,
        has_prefix_cache=Feature.PREFIXES in features,
        router=_draw_router(rng, page_tokens, context_tokens, features),
        prefill=_draw_prefill(rng, page_tokens, features),
        decode=_draw_decode(rng, page_tokens, features),
    )


def _draw_router(
    rng: Random, page_tokens: int, context_tokens: int, features: frozenset[Feature]
) -> RouterConfig:
    config = RouterConfig(context_tokens=context_tokens, page_tokens=page_tokens)
    if Feature.SHORT_TIMERS in features:
        config = replace(config, request_ms=rng.choice((1_000, 8_000)), queue_ms=rng.choice((200, 4_000)))
    if Feature.TINY_BOUNDS in features:
        config = replace(config, queue_max=rng.choice((3, 8)), requests_max=rng.choice((5, 12)))
    return replace(config, retries_max=rng.choice((1, 1, 0, 2)))


def _draw_prefill(rng: Random, page_tokens: int, features: frozenset[Feature]) -> PrefillConfig:
    config = PrefillConfig(
        page_bytes=1,
        page_tokens=page_tokens,
        batch_bytes=rng.choice((1, 1, 2, 3)),
        batches_in_flight_max=rng.choice((1, 2, 3)),
    )
    if Feature.SHORT_TIMERS in features:
        config = replace(config, batch_ms=rng.choice((1, 20, 200)))
    if Feature.TINY_BOUNDS in features:
        config = replace(config, leases_max=rng.choice((1, 3)), closed_max=rng.choice((1, 4)))
    return config


def _draw_decode(rng: Random, page_tokens: int, features: frozenset[Feature]) -> DecodeConfig:
    config = DecodeConfig(
        page_tokens=page_tokens,
        quarantine_percent_max=rng.choice((20, 50, 100)),
        close_retries_max=rng.choice((3, 30)),
    )
    if Feature.SHORT_TIMERS in features:
        config = replace(
            config,
            lease_ms=rng.choice((100, 3_000)),
            close_retry_ms=rng.choice((20, 200)),
            growth_ms=rng.choice((20, 500)),
        )
    if Feature.TINY_BOUNDS in features:
        config = replace(config, leases_max=rng.choice((1, 3)))
    return config
