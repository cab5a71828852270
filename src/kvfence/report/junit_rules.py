"""Whether a rule of the audit that found nothing had anything to look at, from a run's events.

Rules it keeps: a rule whose engine, pair, version, server or baseline was not there did not pass. Where the
events do not tell whether it was there, it did not pass either.

What it does not do: judge anything again.
"""

from dataclasses import dataclass

from kvfence.report.digest import Digest
from kvfence.report.exit_codes import UNJUDGED
from kvfence.report.plain import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """What a rule looks at. `engines` empty: any engine."""

    engines: tuple[str, ...] = ()
    has_figures: bool = False
    has_pair: bool = False
    has_version: bool = False
    has_server: bool = False
    has_baseline: bool = False


_NEEDS = {
    "KVF101": _Needs(has_figures=True),
    "KVF102": _Needs(has_figures=True, has_pair=True),
    "KVF103": _Needs(has_figures=True),
    "KVF105": _Needs(has_version=True),
    "KVF106": _Needs(engines=("sglang",), has_pair=True),
    "KVF107": _Needs(engines=("sglang",), has_pair=True),
    "KVF108": _Needs(engines=("sglang", "kvfence"), has_pair=True),
    "KVF109": _Needs(engines=("sglang",)),
    "KVF110": _Needs(engines=("vllm",)),
    "KVF111": _Needs(engines=("vllm",), has_pair=True),
    "KVF112": _Needs(engines=("vllm",)),
    "KVF113": _Needs(has_pair=True),
    "KVF114": _Needs(has_server=True),
    "KVF115": _Needs(has_server=True),
    "KVF116": _Needs(has_baseline=True),
    "KVF117": _Needs(engines=("llama.cpp",)),
}


def why_not_judged(number: str, digest: Digest) -> str | None:
    """Why a rule without a finding did not pass; None where it had all that it looks at."""
    read = [node for node in digest.nodes if node.figures]
    if not read:
        return "no node was read"
    needs = _NEEDS.get(number, _Needs())
    if needs.engines and not any(node.engine in needs.engines for node in read):
        return f"it is about {' and '.join(needs.engines)}; no such node was read"
    lacking = [node.node for node in digest.nodes if node.verdict in UNJUDGED]
    if needs.has_figures and lacking:
        return f"pool or context unknown: {listed(lacking)}"
    if needs.has_pair and not digest.pairs:
        return "no pair of a prefill and a decode node was named or seen"
    nameless = [node.node for node in digest.nodes if node.engine_version is None]
    if needs.has_version and nameless:
        return f"version unknown: {listed(nameless)}"
    if needs.has_server and not any("://" in target for target in digest.started.targets):
        return "no server was asked: a log or a saved answer does not tell"
    if needs.has_baseline:
        return "no change was told; whether there was a baseline to compare with, the events do not say"
    return "the run was interrupted" if digest.ended is None else None
