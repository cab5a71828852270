"""From a batch of logits to one token a row.

Rules it keeps:
- What a row gets is a function of its own logits, parameters, history and (seed, position) alone: greedy
  rows are answered by one batched argmax, which is exact, and every other row is worked on by itself.
- Noise is one uniform number in [0, 1): the keyed hash of (seed, position). It picks the token by inverse
  transform over the filtered distribution, so that an attempt that is computed again on another node
  continues the same answer, and nothing has to be remembered between steps.
- Order of the steps, as in vLLM's V1 sampler (`vllm/v1/sample/sampler.py`): logit_bias; repetition, then
  frequency, then presence penalty; temperature; min_p; top_k; top_p; draw.
- Logprobs are the raw model's (vLLM's default `logprobs_mode=raw_logprobs`): log-softmax of the logits
  before bias, penalties, temperature and filters.

It does not stop anything: end tokens, stop strings and max_tokens are the executor's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import torch
from torch import Tensor

from kvfence.engine.sampling import SamplingParams, TokenLogprobs
from kvfence.protocol.errors import InternalError, invariant

# top_p looks at this many of the likeliest tokens before it sorts the whole vocabulary, which takes
# milliseconds. The answer is the same either way; only a flat distribution needs the later looks.
TOP_P_LOOKS_TOKENS = (256, 4096)
UNIFORM_BITS = 53
UINT64_MASK = 2**64 - 1
# A client's number below the first is a zero in float32, and a division by it no number any more.
FLOAT32_TINY, FLOAT32_MAX = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max


class BadLogitsError(InternalError):
    """The model gave NaN or infinite logits in `rows`; nothing was sampled for any row.

    Take those rows out, fail them, and sample the others again: the answer to them is the same.
    """

    def __init__(self, rows: tuple[int, ...]) -> None:
        """Name the rows by their index in the batch."""
        super().__init__(
            f"the model's logits are not finite in batch rows {list(rows)}: a page that they read held no "
            "valid K/V, or the weights overflow in this dtype; fail those rows and sample the rest again"
        )
        self.rows = rows


@dataclass(frozen=True, slots=True)
class SampleRow:
    """What one row brings besides its logits.

    `position` is the absolute position of the token to be sampled. `prompt_tokens` is the client's prompt
    and `output_counts` counts what was sampled after it, in earlier attempts too: a recomputed attempt,
    whose prefill covers both, must keep them apart or its penalties would change. Both are only read,
    and only when a penalty asks for them.
    """

    params: SamplingParams
    position: int
    prompt_tokens: Sequence[int] = ()
    output_counts: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The token of one row, with logprobs if its parameters asked for them."""

    token: int
    logprobs: TokenLogprobs | None = None


def uniform(seed: int, position: int) -> float:
    """Return the noise of (seed, position), in [0, 1) with 53 random bits. The seed counts modulo 2**64."""
    key = (seed & UINT64_MASK).to_bytes(8, "little")
    digest = blake2b(
        position.to_bytes(8, "little"), digest_size=8, key=key, person=b"kvfence-sample"
    ).digest()
    bits = int.from_bytes(digest, "little") >> (64 - UNIFORM_BITS)
    return float(bits) / (1 << UNIFORM_BITS)


def sample(logits: Tensor, rows: Sequence[SampleRow]) -> list[Sampled]:
    """Sample one token for each row of `logits` (float32 [len(rows), vocabulary]), which is not changed.

    Raises BadLogitsError when a row's logits are NaN or have no finite maximum.
    """
    invariant(logits.dim() == 2 and logits.shape[0] == len(rows), "one row of logits for each row")
    if not rows:
        return []
    best, best_ids = logits.max(dim=-1)  # the first of several maxima: the lowest token id
    if not bool(torch.isfinite(best).all()):
        finite = torch.isfinite(best).tolist()
        raise BadLogitsError(tuple(index for index, good in enumerate(finite) if not good))
    tokens: list[int] = best_ids.tolist()
    sampled = []
    for index, row in enumerate(rows):
        token = tokens[index] if _is_plain_greedy(row.params) else _sample_one(logits[index], row)
        sampled.append(Sampled(token, _logprobs(logits[index], token, row.params.logprobs)))
    return sampled


def _is_plain_greedy(params: SamplingParams) -> bool:
    """Whether the largest raw logit is the answer."""
    return params.temperature == 0.0 and not _changes_logits(params)


def _changes_logits(params: SamplingParams) -> bool:
    return bool(
        params.logit_bias
        or params.repetition_penalty != 1.0
        or params.frequency_penalty != 0.0
        or params.presence_penalty != 0.0
    )


def _sample_one(logits: Tensor, row: SampleRow) -> int:
    params = row.params
    if _changes_logits(params):
        logits = _penalised(logits, row)
    if params.temperature == 0.0:
        return int(logits.argmax())
    # The maximum is taken off first, so that a tiny temperature gives -inf and never inf or NaN.
    scaled = (logits - logits.max()) / max(params.temperature, FLOAT32_TINY)
    ids, weights = _support(torch.exp(scaled), params)
    choice = _inverse_transform(weights, uniform(params.seed, row.position))
    return choice if ids is None else int(ids[choice])


def _penalised(logits: Tensor, row: SampleRow) -> Tensor:
    """Return a copy of one row with bias and penalties.

    Repetition penalty: Keskar et al. 2019 as in transformers' RepetitionPenaltyLogitsProcessor, over prompt
    and output (positive logits divided, negative ones multiplied). Frequency and presence penalties:
    OpenAI's `logit -= count * frequency + (count > 0) * presence`, over the output alone, as vLLM does.
    A token id outside the vocabulary is refused at the edge, and would raise IndexError here.
    """
    params = row.params
    logits = logits.clone()
    if params.logit_bias:
        biased = torch.tensor([token for token, _ in params.logit_bias])
        bias = torch.tensor([value for _, value in params.logit_bias], dtype=logits.dtype)
        logits.index_add_(0, biased.to(logits.device), bias.to(logits.device))
    if params.repetition_penalty != 1.0:
        seen = torch.tensor(sorted({*row.prompt_tokens, *row.output_counts}), dtype=torch.int64)
        seen = seen.to(logits.device)
        values = logits[seen]
        penalty = max(params.repetition_penalty, FLOAT32_TINY)
        logits[seen] = torch.where(values > 0, values / penalty, values * penalty)
    if row.output_counts and (params.frequency_penalty != 0.0 or params.presence_penalty != 0.0):
        ids = torch.tensor(list(row.output_counts.keys()), device=logits.device)
        counts = torch.tensor(list(row.output_counts.values()), dtype=logits.dtype, device=logits.device)
        logits[ids] -= counts * params.frequency_penalty + (counts > 0) * params.presence_penalty
    return logits.clamp_(-FLOAT32_MAX, FLOAT32_MAX)  # a tiny penalty makes a large logit infinite


def _support(weights: Tensor, params: SamplingParams) -> tuple[Tensor | None, Tensor]:
    """Filter unnormalised probabilities (largest = 1): ids and weights of what is kept, None for all ids."""
    if params.min_p > 0.0:
        # The largest weight is 1, hence `min_p` times the largest probability is `min_p` itself here.
        weights = torch.where(weights >= params.min_p, weights, 0.0)
    ids = None
    if params.top_k is not None and params.top_k < weights.numel():
        ids = _largest(weights, params.top_k)
        weights = weights[ids]
    if params.top_p < 1.0:
        kept = _nucleus(weights, params.top_p)
        ids = kept if ids is None else ids[kept]
        weights = weights[kept]
    return ids, weights


def _largest(values: Tensor, count: int) -> Tensor:
    """Return exactly `count` indexes of the largest values, in order; of equal ones the lower index first."""
    if count == values.numel():
        return values.sort(descending=True, stable=True).indices
    threshold = values.topk(count).values[-1]
    candidates = torch.nonzero(values >= threshold).flatten()
    order = values[candidates].sort(descending=True, stable=True).indices
    return candidates[order[:count]]


def _nucleus(weights: Tensor, top_p: float) -> Tensor:
    """Return the fewest likeliest indexes that reach `top_p` (Holtzman et al. 2020), at least one."""
    wanted = top_p * float(weights.sum(dtype=torch.float64))
    for look in (*TOP_P_LOOKS_TOKENS, weights.numel()):
        ids = _largest(weights, min(look, weights.numel()))
        reached = weights[ids].cumsum(0, dtype=torch.float64)
        if float(reached[-1]) >= wanted:
            break
    first_enough = int(torch.searchsorted(reached, wanted))
    return ids[: first_enough + 1]


def _inverse_transform(weights: Tensor, share: float) -> int:
    """Return the index at `share` of the cumulated weights. An index of weight 0 is never returned."""
    cumulated = weights.cumsum(0, dtype=torch.float64)
    total = float(cumulated[-1])
    index = int(torch.searchsorted(cumulated, share * total, right=True))
    if index < cumulated.numel():
        return index
    # `share * total` was rounded up to the total: the last index with any weight is the first to reach it.
    return int(torch.searchsorted(cumulated, total))


def _logprobs(logits: Tensor, token: int, wanted: int | None) -> TokenLogprobs | None:
    if wanted is None:
        return None
    logprobs = torch.log_softmax(logits, dim=-1)
    top: tuple[tuple[int, float], ...] = ()
    if wanted > 0:
        ids = _largest(logprobs, min(wanted, logprobs.numel()))
        top = tuple(zip(ids.tolist(), logprobs[ids].tolist(), strict=True))
    return TokenLogprobs(chosen=float(logprobs[token]), top=top)
