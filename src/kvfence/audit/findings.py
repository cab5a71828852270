"""What rules work with: the whole audit, and the making of findings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kvfence.audit.baseline import Baseline
from kvfence.audit.node import Node
from kvfence.report import Finding, Place, Severity
from kvfence.report.codes import CODES


@dataclass(frozen=True, slots=True)
class Pair:
    """A prefill and a decode node that serve requests together."""

    prefill: Node
    decode: Node
    place: Place | None = None

    @property
    def name(self) -> str:
        """How it is called in findings."""
        return f"{self.prefill.name} → {self.decode.name}"

    @property
    def limit_tokens(self) -> int | None:
        """The smallest limit on its path; None unless both are known."""
        limits = [node.judgement.limit_tokens for node in (self.prefill, self.decode)]
        known = [limit for limit in limits if limit is not None]
        return min(known) if len(known) == len(limits) else None


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything that was read. `baseline`: the figures of an earlier audit."""

    nodes: tuple[Node, ...]
    pairs: tuple[Pair, ...] = ()
    baseline: Baseline | None = None

    @property
    def routers(self) -> tuple[Node, ...]:
        """The nodes that pass requests on."""
        return tuple(node for node in self.nodes if node.role == "router")

    @property
    def heard(self) -> tuple[Node, ...]:
        """The nodes of which something could be read."""
        return tuple(node for node in self.nodes if node.judgement.verdict != "unreachable")

    def is_paired(self, node: Node) -> bool:
        """Whether KV leaves or enters this node: it has a role in a hand-over."""
        return node.role in ("prefill", "decode") or any(node in (p.prefill, p.decode) for p in self.pairs)


Rule = Callable[[Audit], Iterator[Finding]]


def found(
    code: str,
    about: Node | Pair,
    what: str,
    *,
    subject_key: str = "",
    severity: Severity | None = None,
    place: Place | None = None,
    evidence: Mapping[str, str | int | float | bool | None] | None = None,
    rival: str | None = None,
    fix: str | None = None,
    references: tuple[str, ...] = (),
) -> Finding:
    """Return a finding about a node or a pair; without a severity it has that of its code."""
    return Finding(
        code=code,
        severity=CODES[code].severity if severity is None else severity,
        about=about.name,
        what=what,
        subject_key=subject_key,
        evidence=dict(evidence or {}),
        rival=rival,
        fix=fix,
        references=references,
        place=about.place if place is None and isinstance(about, Pair) else place or _declared(about),
    )


def read_where(node: Node, *figures: str) -> dict[str, str | int | float | bool | None]:
    """Return the figures that are there, each with where it was read: evidence."""
    evidence: dict[str, str | int | float | bool | None] = {}
    for name in figures:
        figure = node.reading.figures.get(name)
        if figure is not None:
            evidence[name] = figure.value
            evidence[f"{name} read from"] = figure.read_from
    return evidence


def _declared(about: Node | Pair) -> Place | None:
    return about.spec.place if isinstance(about, Node) else about.place
