"""An engine that is not known: it is said to be unknown, and read only where it says plainly what it has.

Plain are names that cannot mean anything else: `kv_cache_capacity_tokens`, `kv_pool_tokens`, `max_model_len`.
Pages or blocks without their size are not tokens.
"""

from collections.abc import Iterator

from kvfence.audit.page import Page, items, least, whole, whole_text
from kvfence.audit.readers.interface import Reader, form, model_cards, put_smallest
from kvfence.audit.reading import ADVERTISED, CONTEXT, POOL, Material, Notebook, Reading

FORMS = (
    form(
        "actual",
        "Actual allocated KV pool",
        r"Actual allocated KV pool (?P<n>[\d,]+)(?![\w.])",
        is_mark=False,
    ),
    form("context", "Context length ", r"^.{0,40}\bContext length (?P<n>[\d,]+)\s*$", is_mark=False),
    form(
        "capacity",
        "kv_cache_capacity_tokens",
        r"kv_cache_capacity_tokens\W{1,4}(?P<n>\d+)(?![\w.])",
        is_mark=False,
    ),
    form("model_len", "max_model_len", r"max_model_len\W{1,4}(?P<n>\d+)(?![\w.])", is_mark=False),
    form("pages", "num_pages=", r"(?<![\w])num_pages=(?P<n>\d+)", is_mark=False),
)
POOL_FIELDS = ("kv_cache_capacity_tokens", "kv_pool_tokens")
CONTEXT_FIELDS = ("max_model_len", "max_context_tokens")
DEPTH_MAX = 3


def owns(page: Page) -> bool:
    """Owns nothing: it is who reads when nobody else does."""
    del page
    return False


def read(material: Material) -> tuple[Reading, ...]:
    """One reading without an engine."""
    notebook = Notebook(None)
    for page in material.pages:
        objects = tuple(_objects(page.data))
        for figure, names in ((POOL, POOL_FIELDS), (CONTEXT, CONTEXT_FIELDS)):
            for name in names:
                notebook.put_of(page, figure, least(whole(item.get(name)) for item in objects), name)
        for metric in POOL_FIELDS:
            notebook.put_of(page, POOL, least(whole(sample.value) for sample in page.of_name(metric)), metric)
        cards = least(whole(card.get("max_model_len")) for card in model_cards(page))
        notebook.put_of(page, ADVERTISED, cards, "max_model_len")
    hits = material.hits
    for name in ("actual", "capacity"):
        put_smallest(notebook, hits, name, POOL, read=whole_text)
    for name in ("context", "model_len"):
        put_smallest(notebook, hits, name, CONTEXT, read=whole_text)
    if hits.has("pages") and not notebook.has(POOL):
        notebook.note(
            "the log counts pages and does not say how many tokens a page has: the pool is not known"
        )
    notebook.note("the engine is not known to this audit: only figures with plain names were read")
    return (notebook.done(),)


def _objects(data: object, depth: int = 0) -> Iterator[dict[str, object]]:
    """The objects of an answer, some levels deep: `{…}`, `{"engines": [{…}]}`."""
    if depth > DEPTH_MAX:
        return
    if isinstance(data, dict):
        yield data
        for value in data.values():
            yield from _objects(value, depth + 1)
    for item in items(data):
        yield from _objects(item, depth + 1)


READER = Reader("unknown", FORMS, owns, read)
