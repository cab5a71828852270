"""Codes of the check: one request's content, constraints or traces show in another's answer. Data alone.

Rules it keeps: words of an entry say what such a finding proves and what it does not; a text difference
alone is nowhere called a leak.
"""

from kvfence.report.codes_entry import AISVS, Code
from kvfence.report.finding import Severity

CONTAIN = (
    "Take the deployment out of service or route tenants to servers of their own; keep logs, versions and "
    "this report; tell those who answer for security and privacy."
)
SGLANG_ENQUEUED = "https://github.com/sgl-project/sglang/pull/34208"
VLLM_STALE = "https://github.com/vllm-project/vllm/issues/52234"

CROSSING_CODES: tuple[Code, ...] = (
    Code(
        number="KVF201",
        title="A foreign marker came back",
        severity=Severity.CRITICAL,
        what=(
            "An answer to one request holds a word of at least 64 random bits that only another request "
            "of this run was ever given. Content crosses between requests; what crosses for real users is "
            "theirs. Treat it as a data breach."
        ),
        why=(
            "Pages, rows, slots or replies of one request are read for another: a rejected request that "
            "goes on, a transfer that outlives its pages, a cache key that leaves something out, a reply "
            "sent to the wrong caller. The scenario narrows it down, the marker alone does not."
        ),
        mend=(
            f"{CONTAIN} Then run kvfence audit for known causes, and the replay line of the finding on a "
            "server of your own, with one suspect switched off at a time (disaggregation, prefix cache, "
            "offload, overlap scheduling)."
        ),
        references=(
            AISVS,
            "CWE-200",
            "CWE-488",
            SGLANG_ENQUEUED,
            "https://github.com/sgl-project/sglang/pull/24226",
            "https://github.com/vllm-project/vllm/issues/37076",
        ),
    ),
    Code(
        number="KVF202",
        title="One request's content changes another's answer, exactly and again",
        severity=Severity.CRITICAL,
        what=(
            "With shapes and schedule held, only the content of request A was changed, and B's answer "
            "changed with it, each time in the same way. B computes over something of A."
        ),
        why=(
            "The same causes as for a foreign marker, where the model does not happen to repeat what it "
            "should not see. Rounding by batch shape is excluded because shapes were equal; that holds on "
            "an idle server of one's own alone."
        ),
        mend=f"{CONTAIN} The replay line reproduces it; switch suspects off one at a time.",
        references=(AISVS, "CWE-200", "CWE-908"),
    ),
    Code(
        number="KVF206",
        title="Answers differ more than their controls do",
        severity=Severity.MEDIUM,
        what=(
            "Equal requests got different answers under the scenario's load, more often than equal "
            "requests do without it, and again when it was repeated. Something is wrong in a batch; that "
            "content of others is involved is not shown."
        ),
        why=(
            "Either requests influence one another, or rounding depends on the batch more than the "
            "controls could show. Difference of text at temperature 0 is no leak by itself: batching "
            "changes rounding."
        ),
        mend=(
            "Repeat on an idle server of your own with batch-invariant kernels, if the engine has them "
            "(vLLM: VLLM_BATCH_INVARIANT=1). If the difference stays, look at it as at a foreign marker."
        ),
        references=(AISVS, "CWE-362", "https://github.com/vllm-project/vllm/issues/39146"),
    ),
    Code(
        number="KVF207",
        title="Counters show that tenants share a prefix cache",
        severity=Severity.MEDIUM,
        what=(
            "After tenant A had sent a prompt, the server counted cached tokens for tenant B's equal "
            "prompt. B can test, guess by guess, what A has sent."
        ),
        why=(
            "The prefix cache is keyed by tokens alone, or a tenant's salt does not reach every tier. In "
            "vLLM the salt (cache_salt) is a request field: a gateway must set it."
        ),
        mend=(
            "Have the gateway set a salt for each tenant that clients cannot choose, refuse the field "
            "from them, and check that outer tiers carry it; or switch sharing off."
        ),
        references=(
            AISVS,
            "CWE-203",
            "CWE-524",
            "https://github.com/vllm-project/vllm/security/advisories/GHSA-4qjh-9fv9-r85r",
            "https://github.com/LMCache/LMCache/pull/2880",
        ),
    ),
    Code(
        number="KVF208",
        title="Timing shows that tenants share a prefix cache",
        severity=Severity.MEDIUM,
        what=(
            "Tenant B's prompts begin to be answered measurably earlier when tenant A has sent the same "
            "prefix before. No counter is needed to test guesses about what A sends."
        ),
        why="Pages of a shared prefix are not computed again, and the time to the first token tells.",
        mend=(
            "As for shared counters (KVF207): a salt for each tenant on every tier. Rounding or delaying "
            "the first token only makes the attack slower."
        ),
        references=(
            AISVS,
            "CWE-208",
            "CWE-524",
            "https://github.com/vllm-project/vllm/security/advisories/GHSA-4qjh-9fv9-r85r",
        ),
    ),
    Code(
        number="KVF211",
        title="An answer is longer than its own limit",
        severity=Severity.HIGH,
        what=(
            "A request received more tokens than its max_tokens. Its limit, or its tokens, are those of "
            "another row of the batch."
        ),
        why="State of a request is looked up by a row of the batch that has moved.",
        mend=(
            "Upgrade; until then try without pipeline parallelism and overlap scheduling. Repeat with "
            "requests one by one: that has to be clean."
        ),
        references=(AISVS, "CWE-362", "https://github.com/NVIDIA/TensorRT-LLM/pull/13592"),
    ),
    Code(
        number="KVF212",
        title="An answer obeys another request's constraint",
        severity=Severity.HIGH,
        what=(
            "Requests that ran together had each a word or a form of their own, and one answered with "
            "another's. One by one, each was right."
        ),
        why=(
            "Masks, stop words, adapters or sampled tokens are indexed by batch rows that were moved or "
            "swapped under them."
        ),
        mend=(
            f"{CONTAIN} Upgrade; try without structured output, adapters and overlap scheduling in turn to "
            "find the part that mixes rows."
        ),
        references=(
            AISVS,
            "CWE-488",
            "CWE-362",
            "https://github.com/vllm-project/vllm/pull/51890",
            "https://github.com/vllm-project/vllm-gaudi/pull/1200",
        ),
    ),
    Code(
        number="KVF215",
        title="A client may set control fields",
        severity=Severity.HIGH,
        what=(
            "The server accepts fields from a client that steer transfers between its nodes, such as "
            "kv_transfer_params or bootstrap_room. A client can point a request at pages of others."
        ),
        why="The API of a worker is exposed as it is, and the router passes bodies on unchanged.",
        mend=(
            "Refuse or overwrite these fields at the router: kv_transfer_params, bootstrap_host, "
            "bootstrap_port, bootstrap_room, and what your engine adds."
        ),
        references=(
            AISVS,
            "CWE-639",
            "CWE-20",
            "https://github.com/ai-dynamo/dynamo/pull/15057",
            "https://github.com/sgl-project/sglang/issues/40125",
        ),
    ),
    Code(
        number="KVF216",
        title="A client's request id is used as a key",
        severity=Severity.HIGH,
        what=(
            "Two requests with the same id, sent by two clients at once, disturbed each other: one "
            "failed, was ended, or was given what belonged to the other."
        ),
        why="The engine's tables are keyed by an id that the client chose.",
        mend=(
            "Have the gateway replace ids (X-Request-Id, request_id, rid) by its own and return the "
            "client's in another header; upgrade the engine."
        ),
        references=(
            AISVS,
            "CWE-694",
            "CWE-639",
            "https://github.com/vllm-project/vllm/issues/10583",
            "https://github.com/huggingface/transformers/pull/48918",
        ),
    ),
    Code(
        number="KVF217",
        title="A first token of another request",
        severity=Severity.CRITICAL,
        what=(
            "Prompts that force their first token got that of another tenant's prompt. The side channel "
            "between prefill and decode gives out what belongs to others."
        ),
        why=(
            "The slot that carries the first token from prefill to decode is used again, or written "
            "twice, before it is read."
        ),
        mend=f"{CONTAIN} Upgrade; n above 1 and many requests at once make it likelier.",
        references=(
            AISVS,
            "CWE-362",
            "CWE-488",
            "https://github.com/sgl-project/sglang/issues/17259",
            "https://github.com/sgl-project/sglang/pull/24223",
        ),
    ),
    Code(
        number="KVF219",
        title="A stale hand-off was accepted",
        severity=Severity.CRITICAL,
        what=(
            "A decode node took a hand-off after its producer had given the pages back, and answered. It "
            "read what other requests had written there."
        ),
        why=(
            "Block ids in a hand-off carry no generation, and the lease of the producer (vLLM's NIXL "
            "connector: kv_lease_duration, 30 s by default) ends by time."
        ),
        mend=(
            f"{CONTAIN} Make the lease longer than any wait, bound decode's queue, and refuse hand-offs at "
            "the router once half of the lease has gone (KVF111)."
        ),
        references=(AISVS, "CWE-672", "CWE-226", VLLM_STALE),
    ),
)
