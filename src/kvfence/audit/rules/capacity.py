"""KVF101, KVF104, KVF118: pool against context on each node, what is not known, and what was lowered."""

from collections.abc import Iterator

from kvfence.audit.findings import Audit, found, read_where
from kvfence.audit.judge import LOWERED, TOO_SMALL, UNKNOWN
from kvfence.audit.node import Node
from kvfence.audit.reading import CONCURRENCY, CONTEXT, LARGEST, POOL
from kvfence.report import Finding, Severity

REFUSED = "set.refused_to_start"
READ = (POOL, CONTEXT, LARGEST, CONCURRENCY)
# How the two ends are moved, by engine.
LOWER_CONTEXT = {
    "sglang": "--context-length",
    "vllm": "--max-model-len",
    "kvfence": "--context",
    "llama.cpp": "--ctx-size",
    "lmdeploy": "--session-len",
    "tgi": "--max-total-tokens",
}


def pool_too_small(audit: Audit) -> Iterator[Finding]:
    """KVF101: the incident's precondition."""
    for node in audit.heard:
        if node.judgement.verdict != TOO_SMALL:
            continue
        has_refused = node.reading.value(REFUSED) is True
        yield found(
            "KVF101",
            node,
            _numbers(node) + ("; it refused to start so" if has_refused else ""),
            severity=Severity.HIGH if has_refused else None,
            place=node.place(POOL, CONCURRENCY, CONTEXT),
            evidence=read_where(node, *READ),
            fix=_fix(node),
        )


def _numbers(node: Node) -> str:
    """Both numbers, first of all."""
    pool, context = node.reading.number(POOL), node.reading.number(CONTEXT)
    ratio = node.judgement.ratio
    share = "" if ratio is None else f" ({ratio:.2%} of it)"
    if pool is not None and context is not None and pool < context:
        return f"the pool of {pool:,} tokens is smaller than the context of {context:,}{share}"
    return f"what one request can have is smaller than the context: {node.judgement.why}{share}"


def _fix(node: Node) -> str:
    flag = LOWER_CONTEXT.get(node.reading.engine or "")
    limit = node.judgement.limit_tokens
    lower = "lower the context" + (f" ({flag})" if flag else "")
    bound = f" to at most {limit:,}" if limit is not None else ""
    return f"{lower}{bound}, or enlarge the pool to the context; then audit again"


def unknown(audit: Audit) -> Iterator[Finding]:
    """KVF104: a node that could not be judged."""
    for node in audit.heard:
        if node.judgement.verdict == UNKNOWN:
            engine = node.reading.engine or "an engine that this audit does not know"
            yield found(
                "KVF104",
                node,
                f"{node.judgement.why} ({engine})",
                place=node.place(POOL, CONTEXT, LARGEST),
                evidence={**read_where(node, *READ), **_said(node)},
            )


def _said(node: Node) -> dict[str, str | int | float | bool | None]:
    return {f"note {number}": note for number, note in enumerate(node.reading.notes, start=1)}


def lowered(audit: Audit) -> Iterator[Finding]:
    """KVF118: the engine serves less than was configured."""
    for node in audit.heard:
        if node.judgement.verdict == LOWERED:
            limit = node.judgement.limit_tokens
            what = f"{limit:,} tokens are served" if limit is not None else "less is served"
            context = node.reading.number(CONTEXT)
            configured = "" if context is None else f" of a context of {context:,}"
            yield found(
                "KVF118",
                node,
                f"{what}{configured}: {node.judgement.why}",
                place=node.place(LARGEST, CONTEXT),
                evidence=read_where(node, *READ),
            )
