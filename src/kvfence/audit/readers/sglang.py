"""SGLang: server info, metrics, models and log, 0.3 to 0.5.

What misleads, and what this reader does about it:
- `max_req_input_len` is the limit that the engine enforces: min(context, pool) less a small reserve.
- The pool is what the last `max_total_num_tokens` says, the minimum over the ranks, never times `dp_size`.
- `KV Cache is allocated` stands once a pool: where a rank printed several sizes, none of them is taken.
- `max_total_tokens` (a flag) bounds the pool and is not it. The sliding-window pool is told apart. HiCache
  (host memory) adds nothing.
- `/v1/models` shows the model's context, which is what is advertised, not what fits.
- `max_context_length` of the old gRPC answers held the pool; it is taken only from versions known for that.
"""

from collections.abc import Iterator

from kvfence.audit.page import Page, field, flag, items, least, whole, whole_text, word
from kvfence.audit.readers.interface import (
    Reader,
    form,
    is_owned_by,
    model_cards,
    put_smallest,
    smallest,
)
from kvfence.audit.reading import (
    ADVERTISED,
    CONTEXT,
    LARGEST,
    PAGE,
    POOL,
    SWA_POOL,
    Material,
    Notebook,
    Reading,
)
from kvfence.audit.versions import is_below

ENGINE = "sglang"
RESERVE_TOKENS = 6  # max_req_input_len = min(context - 1, pool - 1) - 5
OWN_FIELDS = ("max_req_input_len", "disaggregation_mode", "max_total_num_tokens")
POOL_IN_CONTEXT_FIELD_BELOW = "0.5.4"
ROLES = {"prefill": "prefill", "decode": "decode", "null": "server", "none": "server", "unified": "server"}
DEFERRED = "sglang:decode_deferred_kv_release_total"

SETTINGS = (
    ("disaggregation_transfer_backend", "transfer_backend"),
    ("disaggregation_enable_kv_checksum", "kv_checksum"),
    ("kv_canary", "kv_canary"),
    ("allow_auto_truncate", "auto_truncate"),
    ("enable_hierarchical_cache", "hicache"),
    ("dp_size", "dp_size"),
    ("max_total_tokens", "max_total_tokens"),
)

FORMS = (
    form("args", "server_args=", r"server_args=", is_start=True),
    form("mode", "disaggregation_mode=", r"disaggregation_mode=['\"]?(?P<mode>[a-z]+)", is_identity=True),
    form("final", "max_total_num_tokens=", r"max_total_num_tokens=(?P<n>\d+)"),
    form("context", "context_len=", r"(?<![\w])context_len=(?P<n>\d+)"),
    form("context_flag", "context_length=", r"(?<![\w])context_length=(?P<n>\d+)", is_mark=False),
    form("context_option", "--context-length", r"--context-length[ =](?P<n>\d+)(?!\S)", is_mark=False),
    form("options", "--max-total-tokens", r"--context-length[ =]\d+ .*--max-total-tokens[ =]\d"),
    form("hybrid", "full_layer_tokens=", r"full_layer_tokens=(?P<n>\d+), swa_layer_tokens=(?P<swa>\d+)"),
    form("dsv4", "DSv4 memory calculation", r"DSv4 memory calculation:.*\bfull_token=(?P<n>\d+)"),
    form("allocated", "KV Cache is allocated", r"KV Cache is allocated\..*#tokens: (?P<n>\d+)"),
    form(
        "warning", "KV pool holds", r"KV pool holds (?P<n>\d+) tokens, fewer than --context-length (?P<c>\d+)"
    ),
    form(
        "over_pool",
        "exceeds the maximum allowed",
        r"exceeds the maximum allowed length \((?P<n>\d+) tokens\)",
    ),
    form("capped", "max_running_requests is capped", r"max_running_requests is capped to (?P<n>\d+)"),
    form("prefill_batch", "Prefill batch", r"Prefill batch[.,]? ?#"),
    form("decode_batch", "Decode batch", r"Decode batch[.,]? ?#"),
    form("page", "page_size=", r"(?<![\w])page_size=(?P<n>\d+)", is_mark=False),
    form("checksum", "enable_kv_checksum=", r"disaggregation_enable_kv_checksum=(?P<v>True|False)"),
    form("canary", "kv_canary=", r"kv_canary=['\"]?(?P<v>none|log|raise)\b"),
    form("truncate", "allow_auto_truncate=", r"allow_auto_truncate=(?P<v>True|False)"),
    form("backend", "transfer_backend=", r"disaggregation_transfer_backend=['\"](?P<v>\w+)"),
)


def owns(page: Page) -> bool:
    """Server info by its fields, metrics by their prefix, models by their owner."""
    infos = tuple(_infos(page))
    return bool(infos) or page.has_metrics_of("sglang:") or is_owned_by(page, ENGINE)


def read(material: Material) -> tuple[Reading, ...]:
    """One reading: ranks are parts of a node."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        for info in _infos(page):
            _read_info(notebook, page, info)
    for page in material.pages:
        if page.has_metrics_of("sglang:"):
            _read_metrics(notebook, page)
    for page in material.pages:
        if is_owned_by(page, ENGINE):
            _read_models(notebook, page)
    _read_log(notebook, material)
    _context_from_limit(notebook)
    if notebook.figures.get("set.hicache") is not None and notebook.figures["set.hicache"].value is True:
        notebook.note("HiCache holds KV in host memory: it adds nothing to what one request can have")
    return (notebook.done(),)


def _infos(page: Page) -> Iterator[dict[str, object]]:
    for data in (page.data, field(page.data, "server_args")):
        if isinstance(data, dict) and any(name in data for name in OWN_FIELDS):
            yield data


def _read_info(notebook: Notebook, page: Page, info: dict[str, object]) -> None:
    notebook.version = notebook.version or word(info.get("version"))
    mode = info.get("disaggregation_mode")
    if "disaggregation_mode" in info:
        notebook.role = notebook.role or ROLES.get("null" if mode is None else str(mode))
        notebook.put_of(page, "set.disaggregation_mode", word(mode) or "null", "disaggregation_mode")
    states = items(info.get("internal_states"))
    limits = [whole(field(state, "max_req_input_len")) for state in states]
    notebook.put_of(
        page, LARGEST, least([whole(info.get("max_req_input_len")), *limits]), "max_req_input_len"
    )
    capacities = [whole(field(state, "memory_usage", "token_capacity")) for state in states]
    totals = [
        whole(info.get("max_total_num_tokens")),
        *(whole(field(s, "max_total_num_tokens")) for s in states),
    ]
    notebook.put_of(page, POOL, least([*totals, *capacities]), "max_total_num_tokens, token_capacity")
    _read_grpc_pool(notebook, page, info)
    notebook.put_of(page, CONTEXT, whole(info.get("context_length")), "context_length")
    notebook.put_of(page, PAGE, whole(info.get("page_size")), "page_size")
    for name, setting in SETTINGS:
        value = info.get(name)
        plain = flag(value) if isinstance(value, bool) else whole(value) or word(value)
        notebook.put_of(page, f"set.{setting}", plain, name)
    if "kv_canary" in info and info["kv_canary"] is None:
        notebook.put_of(page, "set.kv_canary", "none", "kv_canary")


def _read_grpc_pool(notebook: Notebook, page: Page, info: dict[str, object]) -> None:
    size = whole(info.get("max_context_length"))
    if size is None or notebook.has(POOL):
        return
    if notebook.version is not None and is_below(notebook.version, POOL_IN_CONTEXT_FIELD_BELOW):
        notebook.put_of(page, POOL, size, "max_context_length, which is the pool in this version")
    else:
        notebook.note(
            f"max_context_length says {size:,}: versions differ in whether that is the context or the pool, "
            "so it was not used"
        )


def _read_metrics(notebook: Notebook, page: Page) -> None:
    def smallest_of(name: str) -> int | None:
        return least(whole(sample.value) for sample in page.of_name(name))

    notebook.put_of(
        page, POOL, smallest_of("sglang:max_total_num_tokens"), "sglang:max_total_num_tokens, the least"
    )
    notebook.put_of(page, CONTEXT, smallest_of("sglang:context_len"), "sglang:context_len")
    notebook.put_of(page, PAGE, smallest_of("sglang:page_size"), "sglang:page_size")
    kinds = {sample.labels["engine_type"] for sample in page.samples if "engine_type" in sample.labels}
    if notebook.role is None and len(kinds) == 1:
        notebook.role = ROLES.get(kinds.pop())
    timeouts = sum(s.value for s in page.of_name(DEFERRED) if s.labels.get("outcome") == "timeout")
    if any(True for _ in page.of_name(DEFERRED)):
        notebook.put_of(page, "set.deferred_release_timeouts", int(max(timeouts, 0)), DEFERRED)


def _read_models(notebook: Notebook, page: Page) -> None:
    advertised = least(whole(card.get("max_model_len")) for card in model_cards(page))
    notebook.put_of(page, ADVERTISED, advertised, "max_model_len")
    notebook.put_of(page, CONTEXT, advertised, "max_model_len")


def _read_log(notebook: Notebook, material: Material) -> None:
    hits = material.hits
    put_smallest(notebook, hits, "over_pool", LARGEST, read=whole_text)
    put_smallest(notebook, hits, "final", POOL, read=whole_text)
    put_smallest(notebook, hits, "warning", POOL, read=whole_text)
    put_smallest(notebook, hits, "hybrid", SWA_POOL, group="swa", read=whole_text)
    put_smallest(notebook, hits, "hybrid", POOL, read=whole_text)
    put_smallest(notebook, hits, "dsv4", POOL, read=whole_text)
    _read_allocated(notebook, material)
    for name in ("context", "context_flag", "context_option"):
        put_smallest(notebook, hits, name, CONTEXT, read=whole_text)
    put_smallest(notebook, hits, "warning", CONTEXT, group="c", read=whole_text)
    put_smallest(notebook, hits, "page", PAGE, read=whole_text)
    put_smallest(notebook, hits, "capped", "set.max_running_requests", read=whole_text)
    mode = hits.latest("mode")
    if mode is not None:
        notebook.role = notebook.role or ROLES.get(mode.groups["mode"].lower())
        notebook.put_line(hits.log, mode, "set.disaggregation_mode", mode.groups["mode"].lower())
    for name, setting in (("checksum", "kv_checksum"), ("truncate", "auto_truncate")):
        hit = hits.latest(name)
        if hit is not None:
            notebook.put_line(hits.log, hit, f"set.{setting}", hit.groups["v"] == "True")
    for name, setting in (("canary", "kv_canary"), ("backend", "transfer_backend")):
        hit = hits.latest(name)
        if hit is not None:
            notebook.put_line(hits.log, hit, f"set.{setting}", hit.groups["v"])
    if hits.has("dsv4") and notebook.role == "prefill" and not notebook.has(LARGEST):
        notebook.note(
            "a DeepSeek V4 prefill node may be limited by its sliding-window pool, a tenth of the full one, "
            "which this log does not print: ask /server_info for max_req_input_len"
        )


def _read_allocated(notebook: Notebook, material: Material) -> None:
    """Take these lines only where each rank printed one size, which then is the pool."""
    hits = material.hits
    if notebook.has(POOL) or not hits.has("allocated"):
        return
    sizes = hits.every("allocated")
    if len(sizes) > len(hits.last("allocated")):
        notebook.note(
            "the log prints the sizes of several pools and no max_total_num_tokens: which of them bounds a "
            "request cannot be told"
        )
        return
    found = smallest(sizes, "n", whole_text)
    if found is not None:
        notebook.put_line(hits.log, found[0], POOL, found[1])


def _context_from_limit(notebook: Notebook) -> None:
    """A limit that lies below what the pool would give is the context's."""
    limit, pool = notebook.number(LARGEST), notebook.number(POOL)
    if limit is None or pool is None or notebook.has(CONTEXT):
        return
    if limit + RESERVE_TOKENS < pool:
        read_from = notebook.figures[LARGEST].read_from
        notebook.put(CONTEXT, limit + RESERVE_TOKENS, f"{read_from} + {RESERVE_TOKENS}, less than the pool")


READER = Reader(ENGINE, FORMS, owns, read)
