"""llama.cpp's server: `/props`, models, metrics, its log (new, time-stamped and old forms), its errors.

What misleads, and what this reader does about it:
- What counts is slots times context of a slot against the cells: slots may share the cells, and then one
  conversation can end the others when they fill.
- A pool line with 0 layers is no pool. The sliding-window cache is told apart.
- `n_ctx_train` is what the model's card claims, not what is served: it is told as advertised.
- `/slots` shows what other people ask; it is never asked for.
"""

from kvfence.audit.log_scan import Hits
from kvfence.audit.page import Page, field, has_fields, least, whole, whole_text, word
from kvfence.audit.readers.interface import Reader, form, is_owned_by, model_cards, put_smallest, smallest
from kvfence.audit.reading import ADVERTISED, CONTEXT, LARGEST, POOL, SWA_POOL, Material, Notebook, Reading

ENGINE = "llama.cpp"
SLOTS = "set.slots"
SHARED = "set.slots_share_cells"
FORMS = (
    form("build", "build: ", r"(?<![\w])build: (?P<v>\d{3,6}) \(", is_start=True),
    form("context", "llama_context: n_ctx ", r"llama_context: n_ctx +=+ *(?P<n>\d+)"),
    form("sequence", "n_ctx_seq", r"n_ctx_seq +(?:= *|\()(?P<n>\d+)"),
    form("per_sequence", "n_ctx_per_seq", r"n_ctx_per_seq +(?:= *|\()(?P<n>\d+)"),
    form("trained", "< n_ctx_train (", r"n_ctx_(?:seq|per_seq) \(\d+\) < n_ctx_train \((?P<n>\d+)\)"),
    form("unified", "kv_unified", r"kv_unified +=+ *(?P<v>true|false)"),
    form(
        "capping",
        "--kv-unified-per-slot",
        r"capping per-slot context \((?P<n>\d+)\) to --kv-unified-per-slot",
    ),
    form("slot", "new slot", r"\bid +(?P<id>\d+) \|.*new slot,? n_ctx(?:_slot)? = (?P<n>\d+)"),
    form("old_slot", "n_ctx_slot=", r"new slot.*\bn_ctx_slot=(?P<n>\d+)"),
    form("old_slots", "n_slots=", r"initializing slots.*\bn_slots=(?P<n>\d+)"),
    form("slots", "initializing slots, n_slots", r"initializing slots, n_slots = (?P<n>\d+)"),
    form("iswa", "creating ", r"creating +(?P<kind>non-SWA|SWA) KV cache, size = (?P<n>\d+) cells"),
    form(
        "cells",
        " cells,",
        r"llama_kv_cache(?:_unified)?: size = +[\d.]+ MiB \( *(?P<n>\d+) cells, +(?P<layers>\d+) layers"
        r"(?:, +(?P<seqs>\d+)/ *(?P<streams>\d+) seqs)?",
    ),
    form("old_cells", "kv_size = ", r"llama_kv_cache_init: kv_size = (?P<n>\d+)"),
    form("old_buffer", "KV buffer size", r"llama_kv_cache_init: +\w+ KV buffer size"),
    form("exceeded", "exceed_context_size_error", r'"exceed_context_size_error".*"n_ctx" ?: ?(?P<n>\d+)'),
)


def owns(page: Page) -> bool:
    """Props by two fields, models by their owner, metrics by their prefix, errors by their type."""
    return (
        has_fields(page.data, "default_generation_settings", "total_slots")
        or is_owned_by(page, "llamacpp")
        or page.has_metrics_of("llamacpp:")
        or field(page.data, "error", "type") == "exceed_context_size_error"
    )


def read(material: Material) -> tuple[Reading, ...]:
    """One reading: slots are parts of a node."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        _read_props(notebook, page)
        if is_owned_by(page, "llamacpp"):
            claimed = least(whole(field(card, "meta", "n_ctx_train")) for card in model_cards(page))
            notebook.put_of(page, ADVERTISED, claimed, "meta.n_ctx_train")
            served = least(whole(field(card, "meta", "n_ctx")) for card in model_cards(page))
            notebook.put_of(page, CONTEXT, served, "meta.n_ctx")
        if field(page.data, "error", "type") == "exceed_context_size_error":
            refused_at = whole(field(page.data, "error", "n_ctx"))
            notebook.put_of(page, CONTEXT, refused_at, "error.n_ctx")
            notebook.put_of(page, LARGEST, refused_at, "error.n_ctx")
    _read_log(notebook, material.hits)
    return (notebook.done(),)


def _read_props(notebook: Notebook, page: Page) -> None:
    if not has_fields(page.data, "default_generation_settings", "total_slots"):
        return
    notebook.version = notebook.version or word(field(page.data, "build_info"))
    slot = whole(field(page.data, "default_generation_settings", "n_ctx"))
    notebook.put_of(page, CONTEXT, slot, "default_generation_settings.n_ctx")
    notebook.put_of(page, SLOTS, whole(field(page.data, "total_slots")), "total_slots")


def _read_log(notebook: Notebook, hits: Hits) -> None:
    build = hits.latest("build")
    if build is not None:
        notebook.version = notebook.version or f"b{build.groups['v']}"
    put_smallest(notebook, hits, "exceeded", LARGEST, read=whole_text)
    put_smallest(notebook, hits, "trained", ADVERTISED, read=whole_text)
    for name in ("slot", "old_slot", "exceeded"):
        put_smallest(notebook, hits, name, CONTEXT, read=whole_text)
    _read_slots(notebook, hits)
    _read_cells(notebook, hits)
    for name in ("sequence", "per_sequence"):
        put_smallest(notebook, hits, name, CONTEXT, read=whole_text)
    if not notebook.has(LARGEST) and notebook.has(ADVERTISED) and hits.has("trained"):
        context = notebook.figures.get(CONTEXT)
        if context is not None:
            notebook.put(LARGEST, context.value, context.read_from)


def _read_slots(notebook: Notebook, hits: Hits) -> None:
    for name in ("slots", "old_slots"):
        put_smallest(notebook, hits, name, SLOTS, read=whole_text)
    ids = [number for hit in hits.every("slot") if (number := int(hit.groups["id"])) >= 0]
    hit = hits.latest("slot")
    if hit is not None:
        notebook.put_line(hits.log, hit, SLOTS, max(ids) + 1)


def _read_cells(notebook: Notebook, hits: Hits) -> None:
    """The cells that all slots share, or each slot's own: what one request can have at most."""
    for hit in hits.every("iswa"):
        kind = POOL if hit.groups["kind"] == "non-SWA" else SWA_POOL
        notebook.put_line(hits.log, hit, kind, whole_text(hit.groups["n"]))
    layered = [hit for hit in hits.every("cells") if hit.groups["layers"].strip("0")]
    if hits.has("iswa"):
        layered = []  # of two caches, these lines do not say which is which
    found = smallest(layered, "n", whole_text)
    if found is not None:
        notebook.put_line(hits.log, found[0], POOL, found[1])
    for name in ("capping", "old_cells", "context"):
        put_smallest(notebook, hits, name, POOL, read=whole_text)
    _read_sharing(notebook, hits)
    _cells_of_old_slots(notebook, hits)


def _read_sharing(notebook: Notebook, hits: Hits) -> None:
    """Whether all slots take from the same cells: fewer streams than sequences, or because it is said."""
    for hit in hits.last("cells"):
        seqs, streams = whole_text(hit.groups.get("seqs")), whole_text(hit.groups.get("streams"))
        if seqs is not None and streams is not None:
            notebook.put_line(hits.log, hit, SHARED, value=streams < seqs)
    for hit in hits.last("unified"):
        notebook.put_line(hits.log, hit, SHARED, value=hit.groups["v"] == "true")
    for hit in hits.last("capping"):
        notebook.put_line(hits.log, hit, SHARED, value=True)


def _cells_of_old_slots(notebook: Notebook, hits: Hits) -> None:
    """The old server divides its cells among the slots: together they are all of them."""
    size, slots = smallest(hits.every("old_slot"), "n", whole_text), notebook.number(SLOTS)
    if size is not None and slots is not None:
        notebook.put_line(hits.log, size[0], POOL, size[1] * slots)


READER = Reader(ENGINE, FORMS, owns, read)
