"""What a node's figures come to: a verdict, a ratio, and the largest request that it can really serve.

Rules it keeps:
- Each engine is judged by the figure that does not mislead on it; see the readers for why.
- Without the figures there is no verdict but *unknown*, which is no pass.
- Figures that may be those of several servers are no pass either; too small only where one of them says so.
- A pool that is smaller than the context is *too small*; a context that the engine itself has lowered to what
  fits is *lowered*: that is safe, and not what was configured.
"""

from dataclasses import dataclass

from kvfence.audit.reading import CONCURRENCY, CONTEXT, LARGEST, POOL, SWA_POOL, Reading

OK, TOO_SMALL, LOWERED, UNKNOWN, UNREACHABLE, NO_POOL = (
    "ok",
    "too small",
    "lowered",
    "unknown",
    "unreachable",
    "no pool",
)
SLACK_TOKENS = 8  # engines keep a few tokens for themselves; SGLang 6
ROUNDING = 0.01  # concurrency is printed with two decimals


@dataclass(frozen=True, slots=True)
class Judgement:
    """`ratio` is pool to context, or what stands for it; `limit_tokens` the effective limit, if known."""

    verdict: str
    why: str
    ratio: float | None = None
    limit_tokens: int | None = None


def judge(reading: Reading, role: str | None) -> Judgement:
    """Judge a node by what its engine's figures mean."""
    judgement = _judge(reading, role)
    if reading.doubt is not None and judgement.verdict in (OK, LOWERED):
        return Judgement(UNKNOWN, reading.doubt, judgement.ratio)
    return judgement


def _judge(reading: Reading, role: str | None) -> Judgement:
    if role == "router" and reading.number(POOL) is None:
        return Judgement(NO_POOL, "a router has no pool of its own", limit_tokens=reading.number(LARGEST))
    if reading.engine == "sglang":
        return _judge_sglang(reading, role)
    if reading.engine == "vllm":
        return _judge_vllm(reading)
    return _judge_plain(reading)


def judge_unreachable(why: str) -> Judgement:
    """Judge a node that was not heard."""
    return Judgement(UNREACHABLE, why)


def _judge_plain(reading: Reading) -> Judgement:
    pool, context, largest = (reading.number(name) for name in (POOL, CONTEXT, LARGEST))
    ratio = pool / context if pool is not None and context is not None else None
    limit = _least(largest, pool, context) if largest is not None or ratio is not None else None
    if reading.value("set.context_lowered") is True and context is not None and largest is not None:
        why = f"the engine lowered the context of {context:,} to {largest:,}"
        return Judgement(LOWERED, why, ratio, limit)
    if pool is None or context is None:
        return _unknown(pool, context, limit)
    # kvfence derives its largest request from the pool, as SGLang does: that is no choice of the operator's.
    if pool < context and (largest is None or pool < largest or reading.engine == "kvfence"):
        return _too_small(pool, context, limit)
    if largest is not None and largest + SLACK_TOKENS < context:
        return Judgement(LOWERED, f"requests above {largest:,} are refused", ratio, limit)
    return Judgement(OK, "the pool holds the longest request", ratio, limit)


def _judge_sglang(reading: Reading, role: str | None) -> Judgement:
    """By `max_req_input_len`, which is the smaller of context and pool less a reserve; else by the pool."""
    pool, context, largest = (reading.number(name) for name in (POOL, CONTEXT, LARGEST))
    if largest is not None and context is not None:
        ratio = pool / context if pool is not None else largest / context
        if largest + SLACK_TOKENS < context or (pool is not None and pool < context):
            return _too_small(pool if pool is not None else largest, context, largest, ratio)
        return Judgement(OK, "max_req_input_len is the context's", max(ratio, 1.0), largest)
    if pool is None or context is None:
        return _unknown(pool, context, largest)
    swa = reading.number(SWA_POOL)
    if pool >= context and role == "prefill" and swa is not None and swa < context:
        why = (
            f"the sliding-window pool of {swa:,} tokens is smaller than the context of {context:,}: versions "
            "differ in whether prefill is bound by it; ask /server_info for max_req_input_len"
        )
        return Judgement(UNKNOWN, why, pool / context)
    if pool < context:
        return _too_small(pool, context, pool)
    return Judgement(OK, "the pool holds the longest request", pool / context, context)


def _judge_vllm(reading: Reading) -> Judgement:
    """By `Maximum concurrency`; the printed pool only where that was not read, or says the same exactly."""
    pool, context = reading.number(POOL), reading.number(CONTEXT)
    if reading.value("set.refused_to_start") is True and context is not None:
        fits = pool if pool is not None else reading.number(LARGEST)
        why = f"the engine refused to start: a request of {context:,} tokens does not fit"
        return Judgement(TOO_SMALL, why) if fits is None else _too_small(fits, context, fits)
    concurrency = reading.value(CONCURRENCY)
    if not isinstance(concurrency, float | int):
        if pool is None or context is None:
            return _unknown(pool, context, None)
        return _too_small(pool, context, pool) if pool < context else _fits(pool / context, context)
    ratio = float(concurrency)
    if pool is not None and context is not None and abs(pool / context - ratio) <= ROUNDING:
        ratio = pool / context
    if ratio < 1:
        if context is None:
            return Judgement(TOO_SMALL, f"one request of the context fits {ratio:g} times", ratio)
        return _too_small(int(ratio * context), context, int(ratio * context), ratio)
    return _fits(ratio, context)


def _fits(ratio: float, context: int | None) -> Judgement:
    return Judgement(OK, "the pool holds the longest request", ratio, context)


def _too_small(pool: int, context: int, limit: int | None, ratio: float | None = None) -> Judgement:
    why = f"{pool:,} tokens are less than the context of {context:,}"
    return Judgement(TOO_SMALL, why, pool / context if ratio is None else ratio, limit)


def _unknown(pool: int | None, context: int | None, limit: int | None) -> Judgement:
    missing = [name for name, value in (("pool", pool), ("context", context)) if value is None]
    return Judgement(UNKNOWN, f"{' and '.join(missing)} could not be read", limit_tokens=limit)


def _least(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
