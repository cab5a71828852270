"""Healthy servers, of the kinds that could be taken for leaking ones."""

from tests.check.fake.clock import PUBLIC_1M
from tests.check.fake.setup import Setup

HEALTHY: dict[str, Setup] = {
    "ample": Setup(),
    "tiny-pool": Setup(pool_tokens=8_192, context_tokens=4_096),
    "preempting": Setup(pool_tokens=3_072, context_tokens=2_048, preempts=True),
    "last-in-first-out": Setup(pool_tokens=8_192, context_tokens=4_096, free_order="last"),
    "lowest-first": Setup(pool_tokens=8_192, context_tokens=4_096, free_order="lowest"),
    "no-prefix-cache": Setup(prefix_cache=False),
    "counts-hidden": Setup(shows_cached=False),
    "rounding": Setup(rounding=0.03),
    "disobedient": Setup(obedience=0.6),
    "disobedient-and-rounding": Setup(obedience=0.6, rounding=0.03, pool_tokens=8_192),
    "queueing": Setup(rows_max=4),
    "vllm": Setup(dialect="vllm", has_tokenize=True),
    "sglang": Setup(dialect="sglang", has_tokenize=False, advertises=False),
    "bare": Setup(
        has_completions=False, has_logprobs=False, has_tokenize=False, shows_cached=False, advertises=False
    ),
}
# The deployment of the public figures: a context of a million tokens, and prefill pools that hold it.
HEALTHY_1M = Setup(
    context_tokens=1_048_576,
    pool_tokens=2_097_152,
    prefill_tokens=2_040_000,
    clock=PUBLIC_1M,
    dialect="sglang",
)
# The same with the incident's prefill pool; a fault is added to it.
BAND_1M = Setup(context_tokens=1_048_576, pool_tokens=1_114_112, prefill_tokens=681_280, clock=PUBLIC_1M)
