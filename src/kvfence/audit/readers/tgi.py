"""Text Generation Inference: `/info`, metrics, log.

What misleads, and what this reader does about it:
- `max_batch_total_tokens` is the pool once the warm-up has measured it. 16,000 is the default of before, and
  no pool; neither is what the launcher's arguments say.
- `max_total_tokens` is the context of a request, `max_input_tokens` (`max_input_length`) its longest prompt.
"""

from kvfence.audit.page import Page, field, has_fields, whole, whole_text, word
from kvfence.audit.readers.interface import Reader, form, put_smallest
from kvfence.audit.reading import ADVERTISED, CONTEXT, POOL, Material, Notebook, Reading

ENGINE = "tgi"
DEFAULT_BATCH_TOKENS = 16_000
FORMS = (
    form("args", "text_generation_launcher: Args", r"text_generation_launcher: Args \{", is_start=True),
    form("total", "max_total_tokens: ", r"\bmax_total_tokens: (?:Some\( *)?(?P<n>\d+)"),
    form("measured", "max batch total tokens to", r"Setting max batch total tokens to (?P<n>\d+)"),
    form("router", "text_generation_router", r"text_generation_router(?:::|:)"),
    form("launcher", "text_generation_launcher", r"text_generation_launcher:"),
)


def owns(page: Page) -> bool:
    """`/info` by two fields, metrics by their prefix."""
    return page.has_metrics_of("tgi_") or (
        has_fields(page.data, "model_id")
        and (has_fields(page.data, "max_total_tokens") or has_fields(page.data, "max_batch_total_tokens"))
    )


def read(material: Material) -> tuple[Reading, ...]:
    """One reading."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        if not has_fields(page.data, "model_id"):
            continue
        notebook.version = notebook.version or word(field(page.data, "version"))
        total = whole(field(page.data, "max_total_tokens"))
        notebook.put_of(page, CONTEXT, total, "max_total_tokens")
        notebook.put_of(page, ADVERTISED, total, "max_total_tokens")
        prompt = whole(field(page.data, "max_input_tokens")) or whole(field(page.data, "max_input_length"))
        notebook.put_of(page, "set.max_input_tokens", prompt, "max_input_tokens")
        _put_pool(notebook, page, whole(field(page.data, "max_batch_total_tokens")))
    hits = material.hits
    put_smallest(notebook, hits, "measured", POOL, read=whole_text)
    put_smallest(notebook, hits, "total", CONTEXT, read=whole_text)
    if hits.has("args") and not notebook.has(POOL):
        notebook.note(
            "the launcher's arguments are what was asked for before the warm-up: the pool is not in them"
        )
    return (notebook.done(),)


def _put_pool(notebook: Notebook, page: Page, tokens: int | None) -> None:
    if tokens == DEFAULT_BATCH_TOKENS:
        notebook.note(f"max_batch_total_tokens is its default of {tokens:,}, which is not a pool")
    else:
        notebook.put_of(page, POOL, tokens, "max_batch_total_tokens")


READER = Reader(ENGINE, FORMS, owns, read)
