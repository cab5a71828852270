"""Rules on nodes for tests: what a rule finds, as (code, severity, what it is about, what)."""

from tests.audit.hearing import node

from kvfence.audit.findings import Audit, Pair
from kvfence.audit.readers import READERS

assert READERS, "nodes of tests are read by the real readers"


def findings(rule, *nodes, pairs=(), baseline=None):
    audit = Audit(nodes, tuple(Pair(*pair) for pair in pairs), baseline)
    return list(rule(audit))


def said(rule, *nodes, **facts):
    return [(one.code, one.severity.value, one.about, one.what) for one in findings(rule, *nodes, **facts)]


def sglang(name="node", role=None, *, url=None, env=None, wait=None, **info):
    """A SGLang node by its server info."""
    page = {"/server_info": {"version": "0.5.23", "disaggregation_mode": role, **info}}
    return node(pages=page, name=name, role=role, url=url, env=env or {}, queue_wait_s_max=wait)


def vllm(
    name="node", role=None, *, connector=None, wait=None, version="0.32.0", lease=None, policy=None, more=""
):
    """A vLLM node by its log."""
    parts = [("kv_connector", connector), ("kv_load_failure_policy", policy)]
    words = ", ".join(f"{key}='{value}'" for key, value in parts if value is not None)
    lines = [f"vLLM API server version {version}", f"KVTransferConfig({words})"]
    if lease is not None:
        lines.append(f"'kv_lease_duration': {lease}")
    return node(*lines, *more.splitlines(), name=name, role=role, queue_wait_s_max=wait)
