"""What a request asks of the sampler. No torch here: the router reads and validates it too."""

import msgspec


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling of one choice. Ranges are checked at the edge (`serving.schemas`).

    `temperature` 0 is greedy. `top_k` None and `top_p` 1.0 keep everything. Noise is a function of
    (`seed`, position) alone, so that a recomputed attempt goes on with the same answer; the server draws
    a seed where the client gave none. `logprobs` is the number of alternatives wanted (0: only the
    chosen token's), None for no logprobs at all.
    """

    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    logprobs: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False


class TokenLogprobs(msgspec.Struct, frozen=True):
    """Log-probability of the chosen token and of the likeliest alternatives (token id, logprob)."""

    chosen: float
    top: tuple[tuple[int, float], ...] = ()
