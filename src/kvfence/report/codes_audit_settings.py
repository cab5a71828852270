"""Codes of the audit: versions, settings and open doors that are known to do harm. Data alone.

Rules it keeps: those of `codes_audit`.
"""

from kvfence.report.codes_entry import AISVS, Code
from kvfence.report.finding import Severity

SGLANG_OVERLONG = "https://github.com/sgl-project/sglang/issues/30233"
SGLANG_ENQUEUED = "https://github.com/sgl-project/sglang/pull/34208"
SGLANG_DEFERRED = "https://github.com/sgl-project/sglang/pull/35049"

SETTING_CODES: tuple[Code, ...] = (
    Code(
        number="KVF105",
        title="This version is known to be vulnerable",
        severity=Severity.HIGH,
        what=(
            "The engine's version, together with the way it is set up, is known to mix requests' KV or to "
            "go on with rejected ones. The finding names the entry of the list and its source."
        ),
        why=(
            "The defect was fixed in a later version and this one runs still. For SGLang with separate "
            "prefill and decode: rejected requests are retired from 0.5.20 on, unadmitted ones from "
            "0.5.21, and all repairs of the incident are in from 0.5.22."
        ),
        mend="Upgrade to the version that the finding names; until then take the named setting out of use.",
        references=(AISVS, "CWE-1395", SGLANG_OVERLONG, SGLANG_ENQUEUED),
    ),
    Code(
        number="KVF106",
        title="Deferred release is off, or ends by time alone",
        severity=Severity.HIGH,
        what=(
            "When a request is aborted in mid-transfer, its destination pages go back to the pool "
            "although the writer may still write. The late write lands in the pages of whoever has them "
            "next."
        ),
        why=(
            "SGLang holds such pages back only with SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE (on "
            "by default from 0.5.21), and even then releases them after a time-out of 30 s: time proves "
            "nothing about a write that is under way."
        ),
        mend=(
            "Turn deferred release on at every decode node, watch the counter of releases by time-out "
            "(decode_deferred_kv_release_total, outcome timeout), and restart the writer rather than wait "
            "where it rises. No router should abort a request in mid-transfer because its client has "
            "gone."
        ),
        references=(AISVS, "CWE-416", "CWE-672", SGLANG_DEFERRED),
    ),
    Code(
        number="KVF107",
        title="Transfer batches have no bound",
        severity=Severity.MEDIUM,
        what=(
            "A prompt's pages may be posted as one transfer of any size. The larger it is, the longer it "
            "stays in flight after an abort or a time-out, and the likelier its pages have a new owner "
            "when it lands."
        ),
        why="SGLANG_MOONCAKE_MAX_TRANSFER_BATCH_INDICES is 0 by default, which means: no bound.",
        mend=(
            "Set a bound on prefill nodes, so that one batch posts well within the time-outs of both "
            "sides; then measure throughput again."
        ),
        references=(AISVS, "CWE-770", "CWE-672"),
    ),
    Code(
        number="KVF108",
        title="Nothing checks what was transferred",
        severity=Severity.MEDIUM,
        what=(
            "Decode takes over pages without any check that they were written, completely, for this "
            "request. A missed or misdirected write cannot be noticed by anybody but the reader of the "
            "answer."
        ),
        why=(
            "In SGLang both instruments are off by default: --disaggregation-enable-kv-checksum (from "
            "0.5.21, unkeyed, both sides, skipped without a word when prefill sent none) and --kv-canary. "
            "vLLM's connectors have none."
        ),
        mend=(
            "SGLang: switch the checksum on at both sides, and the canary (log first: raise ends the "
            "server) where the attention backend has it. They detect accidents; they do not replace the "
            "repairs of the transfer itself."
        ),
        references=(AISVS, "CWE-353", "https://github.com/vllm-project/vllm/issues/19329"),
    ),
    Code(
        number="KVF109",
        title="Long prompts are cut without a word",
        severity=Severity.MEDIUM,
        what=(
            "The server shortens a prompt that is too long instead of refusing it. The answer looks "
            "whole; instructions, and whatever a policy put at the cut end, were never read."
        ),
        why=(
            "SGLang does so with --allow-auto-truncate; other servers cut by default to the context a "
            "model was loaded with."
        ),
        mend="Switch it off, and let the client have a status of 400 that names the limit.",
        references=(AISVS, "CWE-20", "CWE-440"),
    ),
    Code(
        number="KVF110",
        title="Failed loads are recomputed",
        severity=Severity.HIGH,
        what=(
            "When KV that another node should have delivered cannot be loaded, the request goes on by "
            "computing it again. Where the failure is told too late, or for some pages only, it goes on "
            "over pages that nobody wrote for it."
        ),
        why=(
            "In vLLM it is the setting kv_load_failure_policy: recompute. Failures of hybrid models and "
            "of hand-shakes were reported to slip past it, with status 200."
        ),
        mend=(
            'Set "kv_load_failure_policy": "fail" in --kv-transfer-config of every node, and let clients '
            "retry."
        ),
        references=(
            AISVS,
            "CWE-755",
            "CWE-636",
            "https://github.com/vllm-project/vllm/issues/52234",
            "https://github.com/vllm-project/vllm/pull/40364",
        ),
    ),
    Code(
        number="KVF111",
        title="The producer's lease ends before the consumer may read",
        severity=Severity.HIGH,
        what=(
            "A prefill node gives pages back after its lease time while a decode node may still be "
            "waiting for its turn to read them. It then reads what other requests wrote there: status "
            "200, another user's text, and no failure counted."
        ),
        why=(
            "vLLM's NIXL connector holds pages for kv_lease_duration (30 s by default). A decode queue "
            "can be longer than that, and block ids carry no generation by which the reader could tell."
        ),
        mend=(
            "Make the lease longer than decode's queue and the router's time-out together, bound the "
            "queue, and raise an alarm on vllm:nixl_num_kv_expired_reqs_total. kvfence check --allow and "
            "its scenario stale-handoff show whether it happens."
        ),
        references=(AISVS, "CWE-672", "CWE-226", "https://github.com/vllm-project/vllm/issues/52234"),
    ),
    Code(
        number="KVF112",
        title="A connector drops the tenant's salt",
        severity=Severity.HIGH,
        what=(
            "A second tier of the prefix cache (CPU, disk, remote store) finds pages by their tokens "
            "alone. One tenant's prefix is a hit for another, although the engine's own cache keeps them "
            "apart."
        ),
        why=(
            "vLLM mixes cache_salt into the hash of the first block. A connector that makes its own keys "
            "from the raw tokens leaves it out."
        ),
        mend=(
            "Use a version of the connector that carries the salt, give each tenant a store or a "
            "namespace of its own, or switch the tier off for shared deployments."
        ),
        references=(
            AISVS,
            "CWE-524",
            "CWE-668",
            "https://github.com/vllm-project/vllm/issues/53495",
            "https://github.com/LMCache/LMCache/pull/2880",
        ),
    ),
    Code(
        number="KVF113",
        title="A pair is declared and nothing connects it",
        severity=Severity.MEDIUM,
        what=(
            "Two nodes are said to be prefill and decode of each other, but no KV is transferred: decode "
            "computes prompts again by itself. Every test of the transfer would pass in vain."
        ),
        why=(
            "A role was set without a connector, or names do not match. vLLM then says at run time that "
            "there are transfer parameters and no connector, and goes on."
        ),
        mend=(
            "Configure the connector on both sides (vLLM: --kv-transfer-config; SGLang: "
            "--disaggregation-mode and --disaggregation-transfer-backend), or take the pair out of the "
            "deployment file."
        ),
        references=(AISVS, "CWE-440"),
    ),
    Code(
        number="KVF114",
        title="Metrics or server information are open to anyone",
        severity=Severity.MEDIUM,
        what=(
            "Without a key one can read versions, settings and live counters of the server. They tell an "
            "attacker which defect to try, and when the caches hold what others sent."
        ),
        why="The endpoints share the port of the API, and its key does not cover them.",
        mend=(
            "Bind them to an inner address, or let the gateway refuse /metrics, /server_info and their "
            "like from outside."
        ),
        references=(AISVS, "CWE-497", "CWE-306"),
    ),
    Code(
        number="KVF115",
        title="A worker answers beside the router",
        severity=Severity.HIGH,
        what=(
            "A prefill or decode node can be reached directly. Whoever gets there passes by the router's "
            "tenants and limits, and can send the control fields of a transfer by hand."
        ),
        why=(
            "Workers listen on all addresses. SGLang's bootstrap server (port 8998 by default) accepts "
            "routes without authentication, and vLLM's hand-off takes block ids from the body."
        ),
        mend=(
            "Put workers and bootstrap ports behind a network policy that only the router passes, and "
            "have the router overwrite control fields in every body."
        ),
        references=(
            AISVS,
            "CWE-306",
            "CWE-668",
            "https://github.com/sgl-project/sglang/issues/39400",
            "https://github.com/ai-dynamo/dynamo/pull/15057",
        ),
    ),
)
