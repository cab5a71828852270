"""Codes of the audit: figures that do not fit one another, or are not known. Data alone.

Rules it keeps: facts about engines are those of their own settings and public reports, cited by address; a
flag is named with the program that has it.
"""

from kvfence.report.codes_entry import AISVS, Code
from kvfence.report.finding import Severity

SGLANG_OVERLONG = "https://github.com/sgl-project/sglang/issues/30233"
SGLANG_ENQUEUED = "https://github.com/sgl-project/sglang/pull/34208"

FIGURE_CODES: tuple[Code, ...] = (
    Code(
        number="KVF101",
        title="The pool is smaller than the context",
        severity=Severity.CRITICAL,
        what=(
            "This node's KV pool holds fewer tokens than one request may have. A prompt in the band "
            "between the two cannot be held by the node. What becomes of it is the engine's choice: a "
            "refusal, a wait that holds up everybody, or, as in the incident of September 2026, a "
            "rejection inside the engine after which decode answers over pages that other requests left "
            "behind, with status 200."
        ),
        why=(
            "The pool is sized from the memory that weights leave over; the context comes from the "
            "model's configuration. Nothing need compare them: SGLang warns at start from 0.5.23 on and "
            "starts all the same, and /v1/models goes on to advertise the context."
        ),
        mend=(
            "Lower the context to what the smallest pool on the path holds (SGLang: --context-length, "
            "vLLM: --max-model-len), or enlarge the pool (SGLang: --mem-fraction-static, vLLM: "
            "--gpu-memory-utilization, a smaller KV dtype, more devices). Do it on every prefill and "
            "decode node, then audit again. Until then let the router refuse prompts above the pool."
        ),
        references=(AISVS, "CWE-226", "CWE-754", SGLANG_OVERLONG, SGLANG_ENQUEUED),
    ),
    Code(
        number="KVF102",
        title="The limits of a pair differ",
        severity=Severity.HIGH,
        what=(
            "A prefill and a decode node that serve requests together accept different lengths. A request "
            "that one of them admits can be refused by the other in the middle of its way, where a "
            "refusal is handled least well."
        ),
        why=(
            "Nodes of a pair have different memory, flags or parallelism, and each derives its own limit. "
            "The hand-shake of SGLang's disaggregation carries neither pool size nor context length, so "
            "that neither side learns of the other's."
        ),
        mend=(
            "Give both sides the same limit, namely that of the smaller one: set the context explicitly "
            "on each node, and have the router refuse above it."
        ),
        references=(AISVS, "CWE-754", SGLANG_OVERLONG),
    ),
    Code(
        number="KVF103",
        title="More is advertised than can be served",
        severity=Severity.HIGH,
        what=(
            "Clients are told a context that the deployment cannot serve. Those who believe it send "
            "prompts into the band where the engine's refusal path is tried out in production."
        ),
        why=(
            "/v1/models shows the model's context (SGLang and vLLM: max_model_len), not the smallest "
            "limit on the path. In SGLang the effective limit is max_req_input_len of /server_info."
        ),
        mend=(
            "Set the context explicitly to the effective limit, so that the advertised figure follows, "
            "and correct it in gateways and price lists that repeat it."
        ),
        references=(AISVS, "CWE-440"),
    ),
    Code(
        number="KVF104",
        title="A figure could not be read",
        severity=Severity.MEDIUM,
        what=(
            "Pool, context or limit of a node is unknown, so that the rules which need it could not be "
            "applied. Unknown is not a pass: the node may be the one whose pool is too small."
        ),
        why=(
            "The endpoint is off or asks for a key, metrics are not enabled, the start-up lines are not "
            "in the log that was given, or the engine's figures are of a kind that misleads (a token "
            "count of a hybrid model, blocks without their size)."
        ),
        mend=(
            "Give the audit another source: the start-up log of that very process (kubectl logs … | "
            "kvfence audit -), an admin key, or metrics (SGLang: --enable-metrics). Audit again."
        ),
        references=(AISVS, "CWE-778"),
    ),
    Code(
        number="KVF116",
        title="Pool or context has changed since the last audit",
        severity=Severity.MEDIUM,
        what=(
            "The node has another pool or context than when it was last looked at. What was true of its "
            "limits then, at the router and in documents, may not be true now."
        ),
        why=(
            "Another version of the engine counts or reserves memory in another way, a flag has changed, "
            "or a neighbour on the device takes memory at start."
        ),
        mend=(
            "See whether the change was wanted. If it was, write the baseline again; if not, pin the "
            "figures by flags. Baselines are kept for each version of the engine."
        ),
        references=(AISVS, "CWE-1188"),
    ),
    Code(
        number="KVF117",
        title="Slots share their cells",
        severity=Severity.MEDIUM,
        what=(
            "The server's slots draw on one set of KV cells that is smaller than slots times context. A "
            "tenant with a long prompt can take the cells of the others, whose requests then fail."
        ),
        why=(
            "llama.cpp's server with a unified KV buffer gives each slot the whole context and holds "
            "cells for fewer tokens than all slots could use together."
        ),
        mend=(
            "Give the cells for slots times context (--ctx-size), lower --parallel, or use separate "
            "buffers for the slots; bound each tenant's prompt at the gateway."
        ),
        references=(AISVS, "CWE-400", "CWE-770"),
    ),
    Code(
        number="KVF118",
        title="The engine has lowered the context by itself",
        severity=Severity.LOW,
        what=(
            "The context that was configured did not fit, and the engine serves a smaller one. That is a "
            "sound choice; whoever relies on the configured figure does not know of it."
        ),
        why="The engine fits the context to the memory that it finds, and says so in its log alone.",
        mend="Write the lower figure into the configuration, so that what is served is what is written.",
        references=(AISVS, "CWE-440"),
    ),
    Code(
        number="KVF119",
        title="A node could not be reached",
        severity=Severity.MEDIUM,
        what=(
            "The node is part of the deployment and was not looked at. Nothing is known of its pool, its "
            "limits or its version."
        ),
        why="Its address is wrong, it is down, a network policy is in the way, or it asks for another key.",
        mend=(
            "Run the audit from where the node can be reached, or give it the node's start-up log instead "
            "of its address."
        ),
        references=(AISVS, "CWE-778"),
    ),
)
