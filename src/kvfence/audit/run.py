"""One audit from its targets to its events: hear the nodes, pair them, apply the rules.

Events come in this order: RunStarted, one NodeRead a node, one PairRead a pair, findings worst first, notes.
Whoever shows them adds the RunEnded, since what counts as a failure is the user's choice.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from kvfence import __version__
from kvfence.audit.baseline import Baseline
from kvfence.audit.deployment import Deployment, PairSpec
from kvfence.audit.findings import Audit, Pair
from kvfence.audit.gather import Around, hear_all
from kvfence.audit.judge import UNREACHABLE
from kvfence.audit.node import Heard, Node, nodes_of
from kvfence.audit.rules import RULES
from kvfence.audit.rules.known import open_entries
from kvfence.report import AnyEvent, Finding, FindingMade, NodeRead, Noted, PairRead, RunStarted

PAIRS_MAX = 4_096


@dataclass(frozen=True, slots=True)
class Audited:
    """The events, and the nodes for whoever keeps a baseline."""

    events: tuple[AnyEvent, ...]
    nodes: tuple[Node, ...]


async def audit(
    deployment: Deployment, around: Around, *, run: str, started: str, baseline: Baseline | None = None
) -> Audited:
    """Audit a deployment. Raises OperatorError for what the operator must mend before it can begin."""
    clock = asyncio.get_running_loop().time
    began = clock()
    heard = await hear_all(deployment, around)
    found = [nodes_of(spec, what) for spec, what in zip(deployment.nodes, heard, strict=True)]
    nodes = tuple(node for several in found for node in several)
    whole = Audit(nodes, pairs_of(deployment.pairs, nodes), baseline)
    start = RunStarted(
        tool="audit",
        version=__version__,
        run=run,
        started=started,
        targets=tuple(spec.name for spec in deployment.nodes),
    )
    at_s = round(clock() - began, 3)
    notes = _notes(whole, deployment, heard)
    return Audited((start, *_said(whole, at_s), *(Noted(at_s=at_s, text=note) for note in notes)), nodes)


def pairs_of(declared: tuple[PairSpec, ...], nodes: tuple[Node, ...]) -> tuple[Pair, ...]:
    """Return the declared pairs; where none is, every prefill with every decode node, of one address if it
    speaks for several."""
    if declared:
        named = [
            Pair(prefill, decode, pair.place)
            for pair in declared
            for prefill in _named(nodes, pair.prefill, "prefill")
            for decode in _named(nodes, pair.decode, "decode")
        ]
        return tuple(named[:PAIRS_MAX])
    pairs = [
        Pair(prefill, decode)
        for prefill in nodes
        if prefill.role == "prefill"
        for decode in nodes
        if decode.role == "decode" and _belong_together(prefill, decode)
    ]
    return tuple(pairs[:PAIRS_MAX])


def _named(nodes: tuple[Node, ...], name: str, role: str) -> list[Node]:
    """The nodes that came of a declared one: those with the role, where one address speaks for several."""
    several = [node for node in nodes if node.spec.name == name]
    return [node for node in several if node.role == role] or several


def _belong_together(prefill: Node, decode: Node) -> bool:
    if prefill.reading.part is None and decode.reading.part is None:
        return True
    return prefill.spec is decode.spec


def _said(whole: Audit, at_s: float) -> Iterator[AnyEvent]:
    for node in whole.nodes:
        judgement = node.judgement
        yield NodeRead(
            at_s=at_s,
            node=node.name,
            engine=node.reading.engine,
            engine_version=node.reading.version,
            role=node.role,
            figures=dict(node.reading.figures),
            ratio=None if judgement.ratio is None else round(judgement.ratio, 4),
            verdict=judgement.verdict,
            why=judgement.why,
        )
    for pair in whole.pairs:
        yield PairRead(
            at_s=at_s, prefill=pair.prefill.name, decode=pair.decode.name, limit_tokens=pair.limit_tokens
        )
    findings = [finding for rule in RULES for finding in rule(whole)]
    yield from (FindingMade(at_s=at_s, finding=finding) for finding in sorted(findings, key=_worst_first))


def _worst_first(finding: Finding) -> tuple[int, str, str]:
    return finding.severity.rank, finding.code, finding.about


def _notes(whole: Audit, deployment: Deployment, heard: tuple[Heard, ...]) -> list[str]:
    """What a reader should know beside the findings; each once."""
    notes = [*_missing_halves(whole)]
    notes += [
        f"{spec.name}: {note}"
        for spec, what in zip(deployment.nodes, heard, strict=True)
        for note in what.notes
    ]
    for node in whole.nodes:
        notes += [f"{node.name}: {note}" for note in node.reading.notes]
        undecided = open_entries(node)
        if undecided and node.judgement.verdict != UNREACHABLE:
            what = "its version or a setting was not read"
            notes.append(
                f"{node.name}: {what}, so these known defects could not be ruled out: {', '.join(undecided)}"
            )
        notes += _not_compared(whole, node)
    if len(whole.pairs) >= PAIRS_MAX:
        notes.append(f"only the first {PAIRS_MAX:,} pairs were looked at: declare the pairs")
    return list(dict.fromkeys(notes))


def _missing_halves(whole: Audit) -> Iterator[str]:
    """Prefill without decode, or decode without prefill: the path's limit may lie with who was not seen."""
    roles = {node.role for node in whole.nodes}
    for role, other in (("decode", "prefill"), ("prefill", "decode")):
        if role in roles and other not in roles:
            yield (
                f"{role} nodes were audited and no {other} node: the limit of their path is not known; "
                f"name the {other} nodes, too"
            )


def _not_compared(whole: Audit, node: Node) -> Iterator[str]:
    before = None if whole.baseline is None else whole.baseline.of(node.name)
    if whole.baseline is None or node.judgement.verdict == UNREACHABLE:
        return
    if before is None:
        yield f"{node.name}: it is not in the baseline, so nothing was compared"
    elif (before.engine, before.engine_version) != (node.reading.engine, node.reading.version):
        yield (
            f"{node.name}: the baseline is of {before.engine} {before.engine_version}, this is "
            f"{node.reading.engine} {node.reading.version}: figures of different versions are not compared"
        )
