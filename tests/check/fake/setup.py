"""What a fake server is like, as data: sizes, clock, dialect, keys, and the faults that it has."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.check.fake.clock import QUICK, Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One deployment of one model. Lengths are tokens, times seconds.

    `prefill_tokens` is the pool of the prefill node, where it is another one than decode's `pool_tokens`;
    what does not fit the smaller of the two and the context is over-length. `keys` maps API keys to tenants;
    None lets everybody in, each key a tenant of its own. `obedience` is the share of answers that follow the
    prompt; `jitter` the share by which times are longer at random; `rounding` the share of free words that change when others are served beside. `lease_s`: how long
    a hand-off that a client was given is kept. `dialect` is openai, vllm or sglang: the form of errors. `free_order`: of the free
    pages that one is taken which was given back first, last, or has the lowest number.
    """

    model: str = "toy-1"
    adapters: tuple[str, ...] = ()
    context_tokens: int = 8_192
    advertised_tokens: int | None = None
    advertises: bool = True
    prefill_tokens: int | None = None
    pool_tokens: int = 32_768
    page_tokens: int = 16
    free_order: str = "first"
    rows_max: int = 16
    queue_max: int = 256
    preempts: bool = False
    prefix_cache: bool = True
    shows_cached: bool = True
    clock: Clock = QUICK
    jitter: float = 0.0
    obedience: float = 1.0
    rounding: float = 0.0
    seed: int = 0
    dialect: str = "openai"
    keys: Mapping[str, str] | None = None
    has_completions: bool = True
    has_logprobs: bool = True
    has_tokenize: bool = True
    has_usage: bool = True
    takes_temperature: bool = True
    takes_token_ids: bool = True
    only_max_completion_tokens: bool = False
    body_bytes_max: int = 64_000_000
    control_fields: str = "refuse"  # or ignore, or accept: a prefill/decode pair without its router
    lease_s: float = 30.0
    faults: tuple[str, ...] = ()
    misbehaviours: tuple[str, ...] = ()

    @property
    def limit_tokens(self) -> int:
        """The longest request that every pool and the context hold."""
        return min(self.context_tokens, self.prefill_tokens or self.context_tokens, self.pool_tokens)
