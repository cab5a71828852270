"""TensorRT-LLM: its log, its iteration statistics, the metrics of its Triton backend.

What misleads, and what this reader does about it:
- Blocks are tokens only together with the tokens of a block; alone they say nothing.
- `maxSequenceLen` is the context; `maxInputLen` may lie far below it, and is then the largest request.
- The engine lowers `max_seq_len` to what its pools hold, silently but for one line.
- Triton's own version is not that of TensorRT-LLM.
"""

from kvfence.audit.log_scan import Hits
from kvfence.audit.page import Page, field, items, least, whole, whole_text, word
from kvfence.audit.readers.interface import (
    Reader,
    form,
    is_owned_by,
    model_cards,
    put_smallest,
    smallest,
    version_answer,
)
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

ENGINE = "tensorrt-llm"
OWNERS = ("tensorrt_llm", "trtllm")
BLOCK_METRIC = "nv_trt_llm_kv_cache_block_metrics"
FORMS = (
    form("version", "version: ", r"TensorRT[- ]LLM\]?.{0,20}version: (?P<v>\d\S*)", is_start=True),
    form("tokens", "tokens in paged KV cache", r"Using (?P<n>\d+) tokens in paged KV cache"),
    form(
        "allocated", "for max tokens in paged KV cache", r"for max tokens in paged KV cache \((?P<n>[\d,]+)\)"
    ),
    form("blocks", "KV cache primary pool", r"blocks in KV cache primary pool: (?P<n>\d+)"),
    form("block", "tokens per block", r"[Nn]umber of tokens per block: (?P<n>\d+)"),
    form("sequence", "maxSequenceLen:", r"TRTGptModel maxSequenceLen: (?P<n>\d+)"),
    form("input", "maxInputLen:", r"TRTGptModel maxInputLen: (?P<n>\d+)"),
    form(
        "lowered",
        "max_seq_len",
        r"max_seq_len\D{0,60}?(?P<c>\d+)\s*(?:->|to)\s*(?P<n>\d+)(?: \(clamped\))?",
    ),
    form("tagged", "[TensorRT-LLM]", r"\[TensorRT-LLM\]\[(?:INFO|WARNING|ERROR)\]"),
)


def owns(page: Page) -> bool:
    """Statistics by their cache field, metrics by their prefix, models by their owner."""
    return (
        _statistics(page) is not None
        or page.has_metrics_of("nv_trt_llm_")
        or page.has_metrics_of("trtllm_")
        or any(is_owned_by(page, owner) for owner in OWNERS)
    )


def read(material: Material) -> tuple[Reading, ...]:
    """One reading."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        notebook.version = notebook.version or version_answer(page)
        if any(is_owned_by(page, owner) for owner in OWNERS):
            advertised = least(whole(card.get("max_model_len")) for card in model_cards(page))
            notebook.put_of(page, ADVERTISED, advertised, "max_model_len")
        if page.path == "/v2":
            notebook.put_of(page, "set.triton_version", word(field(page.data, "version")), "version")
        _read_statistics(notebook, page)
        _read_block_metrics(notebook, page)
    _read_log(notebook, material.hits)
    return (notebook.done(),)


def _statistics(page: Page) -> object:
    """The cache statistics of the newest iteration, in either spelling."""
    for item in reversed(items(page.data)):
        for name in ("kvCacheStats", "kv_cache_stats"):
            found = field(item, name)
            if found is not None:
                return found
    return None


def _read_statistics(notebook: Notebook, page: Page) -> None:
    statistics = _statistics(page)
    blocks = whole(field(statistics, "maxNumBlocks")) or whole(field(statistics, "max_num_blocks"))
    size = whole(field(statistics, "tokensPerBlock")) or whole(field(statistics, "tokens_per_block"))
    if blocks is not None and size is not None:
        notebook.put_of(page, POOL, blocks * size, "kvCacheStats, maxNumBlocks times tokensPerBlock")
        notebook.put_of(page, PAGE, size, "kvCacheStats.tokensPerBlock")


def _read_block_metrics(notebook: Notebook, page: Page) -> None:
    by_kind: dict[str, list[int | None]] = {}
    for sample in page.of_name(BLOCK_METRIC):
        kind = sample.labels.get("kv_cache_block_type", "")
        by_kind.setdefault(kind, []).append(whole(sample.value))
    blocks, size = least(by_kind.get("max", ())), least(by_kind.get("tokens_per", ()))
    if blocks is not None and size is not None:
        notebook.put_of(page, POOL, blocks * size, f"{BLOCK_METRIC}, max times tokens_per")
        notebook.put_of(page, PAGE, size, f"{BLOCK_METRIC} tokens_per")


def _read_log(notebook: Notebook, hits: Hits) -> None:
    version = hits.latest("version")
    if version is not None:
        notebook.version = notebook.version or version.groups["v"]
    for name in ("allocated", "tokens"):
        put_smallest(notebook, hits, name, POOL, read=whole_text)
    put_smallest(notebook, hits, "block", PAGE, read=whole_text)
    blocks, size = smallest(hits.every("blocks"), "n", whole_text), notebook.number(PAGE)
    if blocks is not None and size is not None:
        notebook.put_line(hits.log, blocks[0], POOL, blocks[1] * size)
    elif blocks is not None and not notebook.has(POOL):
        notebook.note(
            f"the log counts {blocks[1]:,} blocks and does not say how many tokens a block has: the pool is "
            "not known"
        )
    lowered = smallest(hits.last("lowered"), "n", whole_text)
    if lowered is not None and (whole_text(lowered[0].groups["c"]) or 0) > lowered[1]:
        notebook.put_line(hits.log, lowered[0], CONTEXT, whole_text(lowered[0].groups["c"]))
        notebook.put_line(hits.log, lowered[0], LARGEST, lowered[1])
        notebook.put_line(hits.log, lowered[0], "set.context_lowered", value=True)
    put_smallest(notebook, hits, "sequence", CONTEXT, read=whole_text)
    put_smallest(notebook, hits, "input", LARGEST, read=whole_text)


READER = Reader(ENGINE, FORMS, owns, read)
