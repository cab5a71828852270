"""What the clients of a run ask, and when: prompts around every limit, prefixes shared and not.

Rules: token ids tell where a prompt comes from (a family shared by several prompts, of one tenant or of
two; or this request alone), and stay below those of answers.
"""

from dataclasses import dataclass
from random import Random

from kvfence.world import Ask, WorldConfig

MS = 1_000
FAMILIES_MAX = 2
FAMILY_TOKENS, OWN_TOKENS = 1_000, 10_000  # ids of a family's tokens, and of those of one prompt alone


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request, when it comes and to which router (by number)."""

    at_us: int
    ask: Ask
    router: int


def draw_arrivals(rng: Random, config: WorldConfig, *, is_bursty: bool) -> tuple[Arrival, ...]:
    """Draw the requests of a run, in the order in which they come."""
    count, tenants, families = rng.randint(4, 24), rng.randint(1, 3), rng.randint(1, FAMILIES_MAX)
    gap_us = 0 if is_bursty else rng.choice((2 * MS, 30 * MS, 300 * MS))
    at_us, arrivals = 0, []
    for request in range(1, count + 1):
        at_us += int(rng.expovariate(1 / gap_us)) if gap_us else rng.randint(0, 500)
        ask = draw_ask(rng, config, request, f"tenant{rng.randrange(tenants)}", rng.randint(1, families))
        arrivals.append(Arrival(at_us, ask, rng.randrange(config.routers)))
    return tuple(arrivals)


def draw_ask(rng: Random, config: WorldConfig, request: int, tenant: str, family: int) -> Ask:
    """Draw one request."""
    prompt_tokens, max_tokens = _draw_sizes(rng, config)
    prompt = draw_prompt(rng, config, request, prompt_tokens, family)
    stop_after = rng.randint(1, max_tokens) if rng.random() < 0.3 else None
    return Ask(request, tenant, prompt, max_tokens, stop_after)


def draw_prompt(
    rng: Random, config: WorldConfig, request: int, prompt_tokens: int, family: int
) -> tuple[int, ...]:
    """A prompt that begins as others of its family do, or whose pages are each of some family, or its own."""
    own = OWN_TOKENS + 1_000 * request
    if rng.random() < 0.4:
        families = [rng.randint(1, FAMILIES_MAX) for _ in range(prompt_tokens)]
        page = config.page_tokens
        return tuple(families[p // page] * FAMILY_TOKENS + p for p in range(prompt_tokens))
    shared = rng.choice((0, prompt_tokens, rng.randint(0, prompt_tokens)))
    return tuple(family * FAMILY_TOKENS + p if p < shared else own + p for p in range(prompt_tokens))


def limit_of(config: WorldConfig) -> int:
    """The largest prompt + max_tokens that this deployment promises."""
    pool_tokens = min(config.prefill_pages, config.decode_pages) * config.page_tokens
    return min(config.router.context_tokens, pool_tokens)


def _draw_sizes(rng: Random, config: WorldConfig) -> tuple[int, int]:
    """Prompt and max_tokens: small, at a page's edge, at the limit, or between pool and context."""
    limit, page = limit_of(config), config.page_tokens
    (kind,) = rng.choices(("small", "edge", "long", "limit", "band"), (6, 2, 2, 1, 1))
    match kind:
        case "small":
            pages = 4 if config.has_prefix_cache else 2
            prompt_tokens = rng.randint(1, max(1, min(pages * page, limit - 1)))
            return prompt_tokens, rng.randint(1, max(1, min(4, limit - prompt_tokens)))
        case "edge":
            pages = rng.randint(1, max(1, limit // page - 1))
            return max(1, pages * page + rng.choice((-1, 0, 1))), rng.randint(1, max(1, min(3, page)))
        case "long":
            prompt_tokens = rng.randint(1, max(1, min(page, limit - 1)))
            return prompt_tokens, max(1, rng.randint((limit - prompt_tokens) // 2, limit - prompt_tokens))
        case "limit":
            total = max(2, limit + rng.choice((-1, 0, 0, 1)))
            prompt_tokens = rng.choice((1, total - 1, rng.randint(1, total - 1)))
            return prompt_tokens, total - prompt_tokens
        case _:
            most = max(limit, min(config.router.context_tokens, 4 * limit))
            return rng.randint(limit, most), rng.randint(1, 3)
