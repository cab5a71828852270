"""SGLang: server info, metrics, models and log, 0.3 to 0.5.

What misleads, and what this reader does about it:
- `max_req_input_len` is the limit that the engine enforces: min(context, pool) less a small reserve.
- The pool is what the last `max_total_num_tokens` says, the minimum over the ranks, never times `dp_size`.
- `KV Cache is allocated` stands once a pool: where a rank printed several sizes, none of them is taken.
- `max_total_tokens` (a flag) bounds the pool and is not it. Sliding-window and draft pools are told apart.
  HiCache (host memory) adds nothing.
- `/v1/models` shows the model's context, which is what is advertised, not what fits.
- `max_context_length` of the old gRPC answers held the pool; it is taken only from versions known for that.
"""

from collections.abc import Iterator

from kvfence.audit.page import Page, field, flag, items, least, total, whole, word
from kvfence.audit.readers.interface import (
    Reader,
    is_owned_by,
    model_cards,
)
from kvfence.audit.readers.sglang_log import FORMS, ROLES, read_log
from kvfence.audit.reading import (
    ADVERTISED,
    CONTEXT,
    LARGEST,
    PAGE,
    POOL,
    Material,
    Notebook,
    Reading,
)
from kvfence.audit.versions import is_below

ENGINE = "sglang"
RESERVE_TOKENS = 6  # max_req_input_len = min(context - 1, pool - 1) - 5
OWN_FIELDS = ("max_req_input_len", "disaggregation_mode", "max_total_num_tokens")
POOL_IN_CONTEXT_FIELD_BELOW = "0.5.4"
DEFERRED = "sglang:decode_deferred_kv_release_total"

SETTINGS = (
    ("disaggregation_transfer_backend", "transfer_backend"),
    ("disaggregation_enable_kv_checksum", "kv_checksum"),
    ("kv_canary", "kv_canary"),
    ("allow_auto_truncate", "auto_truncate"),
    ("enable_hierarchical_cache", "hicache"),
    ("speculative_algorithm", "speculative"),
    ("dp_size", "dp_size"),
    ("max_total_tokens", "max_total_tokens"),
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
    read_log(notebook, material.hits)
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
    timeouts = total(s.value for s in page.of_name(DEFERRED) if s.labels.get("outcome") == "timeout")
    if any(True for _ in page.of_name(DEFERRED)):
        notebook.put_of(page, "set.deferred_release_timeouts", timeouts, DEFERRED)


def _read_models(notebook: Notebook, page: Page) -> None:
    advertised = least(whole(card.get("max_model_len")) for card in model_cards(page))
    notebook.put_of(page, ADVERTISED, advertised, "max_model_len")
    notebook.put_of(page, CONTEXT, advertised, "max_model_len")


def _context_from_limit(notebook: Notebook) -> None:
    """A limit that lies below what the pool would give is the context's."""
    limit, pool = notebook.number(LARGEST), notebook.number(POOL)
    if limit is None or pool is None or notebook.has(CONTEXT):
        return
    if limit + RESERVE_TOKENS < pool:
        read_from = notebook.figures[LARGEST].read_from
        notebook.put(CONTEXT, limit + RESERVE_TOKENS, f"{read_from} + {RESERVE_TOKENS}, less than the pool")


READER = Reader(ENGINE, FORMS, owns, read)
