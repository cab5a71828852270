"""KVF116, KVF117: what changed since the last audit, and slots that share their cells."""

from collections.abc import Iterator

from kvfence.audit.findings import Audit, found, read_where
from kvfence.audit.reading import CONTEXT, LARGEST, POOL
from kvfence.report import Finding, Severity

POOL_TOLERANCE = 0.01  # sizes that are measured at start differ a little from start to start
SLOTS, SHARED = "set.slots", "set.slots_share_cells"
WORDS = {POOL: "pool", CONTEXT: "context", LARGEST: "largest request"}


def changed(audit: Audit) -> Iterator[Finding]:
    """KVF116: against the baseline, for the same engine and version."""
    for node in audit.heard:
        before = None if audit.baseline is None else audit.baseline.of(node.name)
        is_same = before is not None and (before.engine, before.engine_version) == (
            node.reading.engine,
            node.reading.version,
        )
        if before is None or not is_same:
            continue
        for name, old in before.figures.items():
            new = node.reading.number(name)
            if new is None or abs(new - old) <= old * (POOL_TOLERANCE if name == POOL else 0):
                continue
            yield found(
                "KVF116",
                node,
                f"its {WORDS.get(name, name)} was {old:,} tokens and is {new:,}",
                subject_key=name,
                severity=None if new < old else Severity.LOW,
                place=node.place(name),
                evidence={"before": old, **read_where(node, name)},
            )


def slots_share(audit: Audit) -> Iterator[Finding]:
    """KVF117: slots times context against the cells that they share."""
    for node in audit.heard:
        slots, pool, context = (node.reading.number(name) for name in (SLOTS, POOL, CONTEXT))
        if node.reading.value(SHARED) is not True or slots is None or pool is None or context is None:
            continue
        if slots > 1 and slots * context > pool:
            yield found(
                "KVF117",
                node,
                f"{slots} slots of {context:,} tokens share {pool:,} cells: when they are full, requests of "
                "others end with them",
                place=node.place(POOL),
                evidence=read_where(node, SLOTS, CONTEXT, POOL, SHARED),
            )
