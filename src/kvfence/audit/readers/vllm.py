"""vLLM: metrics, models, version, developer's server info, and the logs of V0 and V1.

What misleads, and what this reader does about it:
- `Maximum concurrency` counts what whole requests need of every group of layers; it is what a node is judged
  by. The token count beside it is wrong for hybrid models: where the two contradict, the pool is told as
  concurrency times context.
- `cache_config_info` is used only where it is group-aware (`kv_cache_size_tokens`,
  `kv_cache_max_concurrency`); `num_gpu_blocks` times `block_size` means nothing for hybrid models.
- Log and metrics have contradicted each other: the smaller concurrency is taken.
- Each rank prints its own lines, and older versions do so without a name: the minimum is taken.
- One server counts its concurrency for one context: where a start counts it for two, several servers wrote
  the log.
"""

from kvfence.audit.page import Page, field, flag, has_fields, least, total, whole, whole_text, word
from kvfence.audit.readers.interface import (
    Reader,
    endings,
    form,
    is_owned_by,
    model_cards,
    put_smallest,
    smallest,
    version_answer,
)
from kvfence.audit.readers.vllm_pool import doubt_several, read_concurrency, read_pool
from kvfence.audit.reading import ADVERTISED, CONTEXT, LARGEST, PAGE, POOL, Material, Notebook, Reading

ENGINE = "vllm"
CACHE_INFO = "vllm:cache_config_info"
PROMPT_SOURCES = "vllm:prompt_tokens_by_source_total"
TOKENS_COUNTED_MAX = 1 << 53
CONFIG_INFO = "vllm:vllm_config_info"
ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}
_N = r"(?P<n>[\d,]+)"

FORMS = (
    form("api_version", "API server version", r"vLLM API server version v?(?P<v>\d\S*)", is_start=True),
    form("engine", "LLM engine (v", r"LLM engine \(v?(?P<v>[^)\s]+)\)"),
    form("engine_context", "max_seq_len=", r"LLM engine .*\bmax_seq_len=(?P<n>\d+)"),
    form("context", "Using max model len", rf"Using max model len {_N}"),
    form("size", "KV cache size:", rf"(?<![\w])[A-Za-z]+ KV cache size: {_N} tokens"),
    form("blocks", " blocks: ", r"# (?:[A-Za-z]+) blocks: (?P<n>\d+)(?:, # CPU|\s*$)"),
    form(
        "concurrency",
        "Maximum concurrency for",
        r"Maximum concurrency for (?P<c>[\d,]+) tokens per request: (?P<n>[\d,]+(?:\.\d+)?)x",
    ),
    form(
        "refused_v0",
        "is larger than the maximum number of tokens that can be stored",
        r"max seq len \((?P<c>\d+)\) is larger than the maximum number of tokens that can be stored in "
        r"KV cache \((?P<n>\d+)\)",
        is_end=True,
    ),
    form(
        "refused_v1",
        "To serve at least one request",
        r"To serve at least one request with.*max seq len \((?P<c>\d+)\)",
        is_end=True,
    ),
    form(
        "estimated",
        "estimated maximum model length",
        r"estimated maximum model length is (?P<n>\d+)",
        is_mark=False,
    ),
    form("no_connector", "no KVConnector found", r"Got kv_transfer_params, but no KVConnector found"),
    form("connector", "kv_connector", r"kv_connector['\"]?[=:] ?['\"](?P<v>\w+)"),
    form("role", "kv_role", r"kv_role['\"]?[=:] ?['\"](?P<v>kv_\w+)", is_identity=True),
    form("policy", "kv_load_failure_policy", r"kv_load_failure_policy['\"]?[=:] ?['\"](?P<v>\w+)"),
    form("lease", "kv_lease_duration", r"kv_lease_duration['\"]?[=:] ?(?P<n>\d+)(?![\d.])"),
    *endings(),
)


def owns(page: Page) -> bool:
    """Metrics by their prefix, models by their owner, the developer's server info by its one field."""
    return page.has_metrics_of("vllm:") or is_owned_by(page, ENGINE) or has_fields(page.data, "vllm_config")


def read(material: Material) -> tuple[Reading, ...]:
    """One reading: ranks are parts of a node."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        notebook.version = notebook.version or version_answer(page)
        if is_owned_by(page, ENGINE):
            advertised = least(whole(card.get("max_model_len")) for card in model_cards(page))
            notebook.put_of(page, ADVERTISED, advertised, "max_model_len")
            notebook.put_of(page, CONTEXT, advertised, "max_model_len")
    for page in material.pages:
        config = field(page.data, "vllm_config")
        if config is not None:
            _read_config(notebook, page, config)
    _read_log(notebook, material)
    read_concurrency(notebook, material, CACHE_INFO)
    read_pool(notebook, material, CACHE_INFO)
    for page in material.pages:
        _read_settings_of_metrics(notebook, page)
    return (notebook.done(),)


def _read_config(notebook: Notebook, page: Page, config: object) -> None:
    """Developer mode shows the whole configuration; some versions as one text, which is not taken apart."""
    transfer = field(config, "kv_transfer_config")
    notebook.put_of(
        page, CONTEXT, whole(field(config, "model_config", "max_model_len")), "model_config.max_model_len"
    )
    if isinstance(config, dict) and "kv_transfer_config" in config and transfer is None:
        notebook.put_of(page, "set.kv_connector", "none", "kv_transfer_config")
    for name in ("kv_connector", "kv_load_failure_policy", "kv_role"):
        notebook.put_of(page, f"set.{name}", word(field(transfer, name)), f"kv_transfer_config.{name}")
    lease = whole(field(transfer, "kv_connector_extra_config", "kv_lease_duration"))
    notebook.put_of(page, "set.kv_lease_duration_s", lease, "kv_connector_extra_config.kv_lease_duration")
    notebook.role = notebook.role or ROLES.get(str(field(transfer, "kv_role")))


def _read_log(notebook: Notebook, material: Material) -> None:
    hits = material.hits
    for name in ("api_version", "engine"):
        hit = hits.latest(name)
        notebook.version = notebook.version or (None if hit is None else hit.groups["v"])
    doubt_several(notebook, hits)
    for name in ("context", "engine_context"):
        put_smallest(notebook, hits, name, CONTEXT, read=whole_text)
    for name in ("refused_v0", "refused_v1"):
        found = smallest(hits.last(name), "c", whole_text)
        if found is not None:
            notebook.put_line(hits.log, found[0], CONTEXT, found[1])
            notebook.put_line(hits.log, found[0], "set.refused_to_start", value=True)
    put_smallest(notebook, hits, "estimated", LARGEST, read=whole_text)
    hit = hits.latest("no_connector")
    if hit is not None:
        notebook.put_line(hits.log, hit, "set.transfer_without_connector", value=True)
    for name, setting in (
        ("connector", "kv_connector"),
        ("policy", "kv_load_failure_policy"),
        ("role", "kv_role"),
    ):
        hit = hits.latest(name)
        if hit is not None:
            notebook.put_line(hits.log, hit, f"set.{setting}", hit.groups["v"])
    if notebook.done().value("set.kv_connector") == "MultiConnector":
        notebook.note("the connectors inside a MultiConnector were not looked at")
    put_smallest(notebook, hits, "lease", "set.kv_lease_duration_s", read=whole_text)
    hit = hits.latest("role")
    if hit is not None:
        notebook.role = notebook.role or ROLES.get(hit.groups["v"])


def _read_settings_of_metrics(notebook: Notebook, page: Page) -> None:
    for sample in page.of_name(CACHE_INFO):
        labels = sample.labels
        notebook.put_of(page, "set.prefix_hash", word(labels.get("prefix_caching_hash_algo")), CACHE_INFO)
        caching = {"True": True, "False": False}.get(labels.get("enable_prefix_caching", ""))
        notebook.put_of(page, "set.prefix_caching", flag(caching), CACHE_INFO)
        size = whole_text(labels.get("block_size"))
        notebook.put_of(page, PAGE, size, f"{CACHE_INFO} block_size")
        is_aware = "kv_cache_size_tokens" in labels or "kv_cache_max_concurrency" in labels
        if not is_aware and not notebook.has(POOL):
            notebook.note(
                "cache_config_info counts blocks, which says nothing of hybrid models: the pool was not "
                "read from it; give the start-up log"
            )
    for sample in page.of_name(CONFIG_INFO):
        size = whole_text(sample.labels.get("cache_config_block_size"))
        notebook.put_of(page, PAGE, size, f"{CONFIG_INFO} cache_config_block_size")
    _read_sources_of_prompts(notebook, page)
    expired = [sample.value for sample in page.of_name("vllm:nixl_num_kv_expired_reqs_total")]
    if expired:
        name = "vllm:nixl_num_kv_expired_reqs_total"
        notebook.put_of(page, "set.kv_expired_requests", total(expired), name)


def _read_sources_of_prompts(notebook: Notebook, page: Page) -> None:
    """How many prompt tokens a node computed by itself, and how many came to it: whether transfer happens."""
    counts: dict[str, float] = {}
    for sample in page.of_name(PROMPT_SOURCES):
        source = sample.labels.get("source", "")
        counts[source] = counts.get(source, 0.0) + sample.value
    for source, setting in (
        ("local_compute", "prompt_tokens_computed"),
        ("external_kv_transfer", "prompt_tokens_received"),
    ):
        if 0 <= counts.get(source, -1.0) < TOKENS_COUNTED_MAX:
            notebook.put_of(page, f"set.{setting}", int(counts[source]), f"{PROMPT_SOURCES} {source}")


READER = Reader(ENGINE, FORMS, owns, read)
