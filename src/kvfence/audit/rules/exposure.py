"""KVF114, KVF115, KVF119: what anybody can reach, and what the audit itself could not."""

from collections.abc import Iterator

from kvfence.audit.findings import Audit, found
from kvfence.report import Finding, Severity

TELLING_PATHS = ("/metrics", "/server_info", "/get_server_info", "/props", "/info", "/v1/capacity")
HERE = "the audit ran from inside, where clients are not: then this is as it should be"


def open_to_anyone(audit: Audit) -> Iterator[Finding]:
    """KVF114: answered without a key. On loopback nobody else is there to ask."""
    for node in audit.heard:
        paths = [path for path in node.open_paths if path in TELLING_PATHS]
        if not paths:
            continue
        what = f"{', '.join(paths)} answered without a key"
        severity = None
        if node.shows_key:
            what += ", and the API key itself is in the answer"
            severity = Severity.HIGH
        yield found(
            "KVF114",
            node,
            what,
            severity=Severity.INFO if node.is_loopback else severity,
            evidence={"paths": ", ".join(paths)},
            rival=HERE,
        )


def beside_the_router(audit: Audit) -> Iterator[Finding]:
    """KVF115: a worker that answers without a key, in a deployment that has a router."""
    if not audit.routers:
        return
    for node in audit.heard:
        if node.role not in ("prefill", "decode") or not node.open_paths:
            continue
        yield found(
            "KVF115",
            node,
            "it answered without a key beside the router",
            severity=Severity.INFO if node.is_loopback else None,
            evidence={"paths": ", ".join(node.open_paths)},
            rival=HERE,
        )


def unreachable(audit: Audit) -> Iterator[Finding]:
    """KVF119: a node of which nothing is known, or whose address gave nothing beside its files."""
    for node in audit.nodes:
        if node.failure is not None and node.reading.part is None:
            yield found("KVF119", node, node.failure)
