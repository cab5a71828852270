"""What vLLM says of its pool and concurrency, in metrics and logs, put together without believing too much.

Rules it keeps: those of `vllm`. A token count that a concurrency contradicts is not taken.
"""

from kvfence.audit.log_scan import Hit, Hits
from kvfence.audit.page import decimal_text, least, whole_text
from kvfence.audit.readers.interface import SEVERAL_SERVERS, put_smallest, smallest
from kvfence.audit.reading import CONCURRENCY, CONTEXT, PAGE, POOL, Material, Notebook

ROUNDING = 0.005  # concurrency is printed with two decimals
CONTRADICTION = 0.02


def doubt_several(notebook: Notebook, hits: Hits) -> None:
    """Look for the contexts of several servers in one start; a draft model prints one, too, and serves none.

    The context is that of the smallest concurrency; without one, the largest that is printed.
    """
    if notebook.has(CONTEXT):
        return  # the running server has said it
    counted = [
        (concurrency, context, hit)
        for hit in hits.every("concurrency")
        if (concurrency := decimal_text(hit.groups["n"])) is not None
        and (context := whole_text(hit.groups["c"])) is not None
    ]
    printed = [
        (size, hit) for hit in hits.every("context") if (size := whole_text(hit.groups["n"])) is not None
    ]
    served = {context for _, context, _ in counted}
    sizes = {size for size, _ in printed}
    if len(served) > 1 or (not served and len(sizes) > 1):
        notebook.doubt = SEVERAL_SERVERS
    if len(served) > 1 or (served and len(sizes) > 1):
        _, context, hit = min(counted, key=lambda one: one[0])
        notebook.put_line(hits.log, hit, CONTEXT, context)
    elif len(sizes) > 1:
        size, hit = max(printed, key=lambda one: one[0])
        notebook.put_line(hits.log, hit, CONTEXT, size)


def read_concurrency(notebook: Notebook, material: Material, metric: str) -> None:
    """Write the smallest concurrency down, and the context that it was counted for."""
    hits = material.hits
    lines = _lines_of_concurrency(notebook, material)
    line = min(lines, key=lambda one: one[1], default=None)
    if not lines and hits.has("concurrency"):
        notebook.note("the log's concurrency was counted for another context than is served: it was not used")
    shown = [
        value
        for page in material.pages
        for sample in page.of_name(metric)
        if (value := decimal_text(sample.labels.get("kv_cache_max_concurrency"))) is not None
    ]
    if shown and line and abs(min(shown) - line[1]) > CONTRADICTION * max(min(shown), line[1]):
        notebook.note(
            f"the log says a concurrency of {line[1]:g}, the metrics say {min(shown):g}: the smaller is taken"
        )
    if shown and (line is None or min(shown) <= line[1]):
        notebook.put(CONCURRENCY, min(shown), f"/metrics {metric} kv_cache_max_concurrency")
    elif line is not None:
        notebook.put_line(hits.log, line[0], CONCURRENCY, line[1])
    if line is not None:
        notebook.put_line(hits.log, line[0], CONTEXT, line[2])


def read_pool(notebook: Notebook, material: Material, metric: str) -> None:
    """Write the pool down: group-aware metrics, then the log's lines, held against its concurrency."""
    hits = material.hits
    shown = least(
        whole_text(sample.labels.get("kv_cache_size_tokens"))
        for page in material.pages
        for sample in page.of_name(metric)
    )
    notebook.put(POOL, shown, f"/metrics {metric} kv_cache_size_tokens")
    size = smallest(hits.every("size"), "n", whole_text)
    line = min(_lines_of_concurrency(notebook, material), key=lambda one: one[1], default=None)
    if size is not None and line is not None:
        _reconcile(notebook, hits.log, size, line)
    elif size is not None:
        notebook.put_line(hits.log, size[0], POOL, size[1])
    blocks = smallest(hits.every("blocks"), "n", whole_text)
    if blocks is not None and line is not None:
        _pool_of_blocks(notebook, hits.log, blocks, line)
    put_smallest(notebook, hits, "refused_v0", POOL, read=whole_text)


def _lines_of_concurrency(notebook: Notebook, material: Material) -> list[tuple[Hit, float, int]]:
    """(line, concurrency, context) of the lines about the context that is served, if that is known."""
    served = notebook.number(CONTEXT)
    return [
        (hit, concurrency, context)
        for hit in material.hits.every("concurrency")
        if (concurrency := decimal_text(hit.groups["n"])) is not None
        and (context := whole_text(hit.groups["c"])) is not None
        and served in (None, context)
    ]


def _reconcile(notebook: Notebook, log: str, size: tuple[Hit, int], line: tuple[Hit, float, int]) -> None:
    """Take the printed size where it agrees with the concurrency, and the product where it does not."""
    hit, concurrency, context = line
    if abs(size[1] / context - concurrency) <= max(ROUNDING * 1.01, CONTRADICTION * concurrency):
        notebook.put_line(log, size[0], POOL, size[1])
        return
    if not notebook.has(POOL):
        notebook.note(
            f"the log prints a pool of {size[1]:,} tokens, which its concurrency of {concurrency:g} "
            "contradicts (a hybrid model): the pool is told as concurrency times context, and says nothing "
            "for another context"
        )
    notebook.put_line(log, hit, POOL, int(concurrency * context))


def _pool_of_blocks(
    notebook: Notebook, log: str, blocks: tuple[Hit, int], line: tuple[Hit, float, int]
) -> None:
    """Blocks and concurrency together give the block size, if it comes out as a whole number."""
    _, concurrency, context = line
    size = concurrency * context / blocks[1]
    # What two printed decimals leave open, in tokens of a block.
    open_by = ROUNDING * context / blocks[1]
    if round(size) < 1 or abs(size - round(size)) > open_by + 1e-9 or open_by >= 0.5:
        return
    notebook.put_line(log, blocks[0], POOL, blocks[1] * round(size))
    notebook.put_line(log, blocks[0], PAGE, round(size))
