"""KVF106, KVF107, KVF108, KVF111, KVF113: settings of a hand-over between a prefill and a decode node."""

from collections.abc import Iterator

from kvfence.audit.findings import Audit, found, read_where
from kvfence.audit.node import BATCH_INDICES, DEFERRED_RELEASE, Node
from kvfence.audit.versions import is_below
from kvfence.report import Finding, Severity

DEFERRED_FROM = "0.5.21"
RELEASE_TIMEOUT_S = 30
NO_CONNECTOR = "set.transfer_without_connector"
COMPUTED, RECEIVED = "set.prompt_tokens_computed", "set.prompt_tokens_received"
MODE = "set.disaggregation_mode"
CONNECTOR = "set.kv_connector"
LEASE = "set.kv_lease_duration_s"
LEASE_DEFAULT_S = 30
NIXL = "NixlConnector"
# Fewer may be those of health checks, which go to a decode node directly.
COMPUTED_MIN = 1_000


def _in_handover(audit: Audit, engine: str) -> Iterator[Node]:
    return (node for node in audit.heard if node.reading.engine == engine and audit.is_paired(node))


def deferred_release(audit: Audit) -> Iterator[Finding]:
    """KVF106: decode gives pages back while a write to them may be under way."""
    for node in _in_handover(audit, "sglang"):
        if node.role != "decode":
            continue
        declared = node.reading.value("set.deferred_release")
        timeouts = node.reading.value("set.deferred_release_timeouts")
        version = node.reading.version
        evidence = read_where(node, "set.deferred_release", "set.deferred_release_timeouts")
        if declared is False:
            yield found("KVF106", node, f"{DEFERRED_RELEASE} is declared off", evidence=evidence)
        elif declared is None and version is not None and is_below(version, DEFERRED_FROM):
            what = (
                f"deferred release is off by default in {version}, and {DEFERRED_RELEASE} is not declared on"
            )
            rival = "it is on in the node's environment, which no server tells: declare it under env"
            yield found("KVF106", node, what, evidence=evidence, rival=rival)
        elif isinstance(timeouts, int) and timeouts > 0:
            what = f"pages were released by time-out {timeouts:,} times, whether or not the writer was done"
            yield found("KVF106", node, what, evidence=evidence)
        else:
            what = f"deferred release ends after {RELEASE_TIMEOUT_S} s, whether or not the writer is done"
            yield found("KVF106", node, what, severity=Severity.LOW, evidence=evidence)


def unbounded_batches(audit: Audit) -> Iterator[Finding]:
    """KVF107: prefill posts a prompt's pages at once."""
    for node in _in_handover(audit, "sglang"):
        backend = node.reading.value("set.transfer_backend")
        if node.role != "prefill" or backend not in (None, "mooncake"):
            continue
        most = node.reading.value("set.transfer_batch_max")
        evidence = read_where(node, "set.transfer_batch_max", "set.transfer_backend")
        if most is None:
            what = f"{BATCH_INDICES} is not declared, and its default is no bound"
            rival = "it is set in the node's environment, which no server tells: declare it under env"
            yield found("KVF107", node, what, severity=Severity.LOW, evidence=evidence, rival=rival)
        elif most == 0:
            yield found("KVF107", node, f"{BATCH_INDICES} is 0, which is no bound", evidence=evidence)


def unchecked(audit: Audit) -> Iterator[Finding]:
    """KVF108: nobody looks at what arrived."""
    for node in _in_handover(audit, "sglang"):
        has_checksum = node.reading.value("set.kv_checksum")
        canary = node.reading.value("set.kv_canary")
        if has_checksum is not True and canary == "none":
            what = "neither a checksum nor a canary looks at transferred pages"
            yield found("KVF108", node, what, evidence=read_where(node, "set.kv_checksum", "set.kv_canary"))
    for node in audit.heard:
        fence = node.reading.value("set.fence")
        if node.reading.engine == "kvfence" and node.reading.part is None and fence in ("off", "contract"):
            what = f"the fence is at {fence}: seals of transferred pages are not verified"
            severity = Severity.HIGH if fence == "off" else None
            yield found("KVF108", node, what, severity=severity, evidence=read_where(node, "set.fence"))


def lease_too_short(audit: Audit) -> Iterator[Finding]:
    """KVF111: prefill gives pages back while decode has not read them yet."""
    for pair in audit.pairs:
        producer = pair.prefill.reading
        if producer.engine != "vllm" or producer.value(CONNECTOR) != NIXL:
            continue
        lease, wait = producer.value(LEASE), pair.decode.spec.queue_wait_s_max
        held = f"{LEASE_DEFAULT_S} s, its default" if lease is None else f"{lease} s"
        seconds = float(lease) if isinstance(lease, int | float) else float(LEASE_DEFAULT_S)
        if wait is not None and wait < seconds:
            continue
        waits = "as long as its queue is" if wait is None else f"{wait:g} s"
        expired = producer.value("set.kv_expired_requests")
        has_expired = isinstance(expired, int) and expired > 0
        count = f"; {expired:,} leases have expired already" if has_expired else ""
        yield found(
            "KVF111",
            pair,
            f"prefill holds pages for {held}, decode may wait {waits}{count}",
            severity=Severity.MEDIUM if wait is None and not has_expired else None,
            evidence=read_where(pair.prefill, LEASE, "set.kv_expired_requests"),
            rival="a gateway bounds the wait: declare it as queue_wait_s_max of the decode node"
            if wait is None
            else None,
        )


def nothing_connects(audit: Audit) -> Iterator[Finding]:
    """KVF113: a role without a connector, seen at run time or in the settings."""
    for node in audit.heard:
        if node.reading.value(NO_CONNECTOR) is True:
            what = "it was asked to transfer KV and has no connector: it computes prompts again by itself"
            yield found("KVF113", node, what, place=node.place(NO_CONNECTOR), subject_key="run time")
        elif audit.is_paired(node) and node.reading.value(CONNECTOR) == "none":
            evidence = read_where(node, CONNECTOR)
            yield found("KVF113", node, f"it is {node.role} and has no connector", evidence=evidence)
        elif node.role == "decode" and _computes_by_itself(node):
            what = f"it computed {node.reading.number(COMPUTED):,} prompt tokens by itself and received none"
            rival = "it was not asked through its prefill node yet"
            evidence = read_where(node, COMPUTED, RECEIVED)
            yield found("KVF113", node, what, evidence=evidence, rival=rival, subject_key="counts")
        elif node.spec.role in ("prefill", "decode") and node.reading.role not in (None, node.spec.role):
            what = f"it is declared as {node.spec.role} and says that it is {node.reading.role}"
            if node.reading.part is None:
                yield found("KVF113", node, what, evidence=read_where(node, MODE))


def _computes_by_itself(node: Node) -> bool:
    return (node.reading.number(COMPUTED) or 0) >= COMPUTED_MIN and node.reading.number(RECEIVED) == 0
