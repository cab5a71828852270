"""KVF102, KVF103: limits along a path, and what clients are told of them."""

from collections.abc import Iterator

from kvfence.audit.findings import Audit, found, read_where
from kvfence.audit.judge import SLACK_TOKENS
from kvfence.audit.reading import ADVERTISED, CONTEXT, LARGEST, POOL
from kvfence.report import Finding, Severity


def limits_differ(audit: Audit) -> Iterator[Finding]:
    """KVF102: worst where prefill's is the smaller one, which is the incident's shape."""
    for pair in audit.pairs:
        prefill, decode = pair.prefill.judgement.limit_tokens, pair.decode.judgement.limit_tokens
        if prefill is None or decode is None or abs(prefill - decode) <= SLACK_TOKENS:
            continue
        is_prefill = prefill < decode
        yield found(
            "KVF102",
            pair,
            f"prefill serves {prefill:,} tokens, decode {decode:,}: the pair serves {min(prefill, decode):,}",
            severity=Severity.HIGH if is_prefill else Severity.MEDIUM,
            evidence={
                **{f"prefill {k}": v for k, v in read_where(pair.prefill, POOL, CONTEXT, LARGEST).items()},
                **{f"decode {k}": v for k, v in read_where(pair.decode, POOL, CONTEXT, LARGEST).items()},
            },
        )


def advertised_above(audit: Audit) -> Iterator[Finding]:
    """KVF103: a node's own word, and the router's for every pair behind it."""
    for node in audit.heard:
        advertised, limit = node.reading.number(ADVERTISED), node.judgement.limit_tokens
        if node.role == "router":
            limit = _limit_behind(audit, limit)
        if advertised is None or limit is None or advertised <= limit + SLACK_TOKENS:
            continue
        yield found(
            "KVF103",
            node,
            f"clients are told {advertised:,} tokens, and {limit:,} can be served",
            severity=None if audit.is_paired(node) or node.role == "router" else _alone(node.reading.engine),
            place=node.place(ADVERTISED),
            evidence=read_where(node, ADVERTISED, LARGEST, POOL),
        )


def _alone(engine: str | None) -> Severity:
    """llama.cpp tells what the model was trained for beside what it serves."""
    return Severity.LOW if engine == "llama.cpp" else Severity.MEDIUM


def _limit_behind(audit: Audit, own: int | None) -> int | None:
    limits = [own, *(pair.limit_tokens for pair in audit.pairs)]
    if not audit.pairs:
        limits += [node.judgement.limit_tokens for node in audit.heard if node.role != "router"]
    return min((limit for limit in limits if limit is not None), default=None)
