"""Ollama: `/api/ps`, `/api/version`, what its command line prints.

What misleads, and what this reader does about it:
- A model declares one context and is loaded with another, often 4,096: the loaded one is what a request has.
- A longer prompt is cut to half of it without a word, so that the declared context is not served.
- Each loaded model has its own: the smallest is told.
"""

from kvfence.audit.page import Page, field, has_fields, items, least, whole, whole_text, word
from kvfence.audit.readers.interface import Reader, form, put_smallest, version_answer
from kvfence.audit.reading import ADVERTISED, CONTEXT, LARGEST, POOL, Material, Notebook, Reading

ENGINE = "ollama"
_SIZE_AND_SHARE = r"(?<!\d)\d{1,6}(?:\.\d{1,3})? [KMGT]B\s+\d{1,3}%(?:/\d{1,3}%)? "
FORMS = (
    form("version", "ollama version", r"[Oo]llama version(?: is)? (?P<v>\d\S*)"),
    form("declared", "context length", r"^\s*context length\s+(?P<n>\d+)\s*$"),
    form("loaded", "% GPU", rf"{_SIZE_AND_SHARE}GPU\s+(?P<n>\d+)(?:\s|$)"),
    form("loaded_on_cpu", "% CPU", rf"{_SIZE_AND_SHARE}CPU(?:/GPU)?\s+(?P<n>\d+)(?:\s|$)"),
    form("column", "CONTEXT ", r"^\s*CONTEXT\s+(?P<n>\d+)\s*$"),
    form("prompt", "prompt eval count:", r"prompt eval count:\s+\d+ token"),
)


def owns(page: Page) -> bool:
    """Loaded models by two fields of each; an empty list and the version only where they were asked for."""
    models = items(field(page.data, "models"))
    if page.path == "/api/version":
        return word(field(page.data, "version")) is not None
    return (page.path == "/api/ps" and has_fields(page.data, "models")) or any(
        has_fields(model, "size_vram", "digest") for model in models
    )


def read(material: Material) -> tuple[Reading, ...]:
    """One reading, for the smallest of the loaded models."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        notebook.version = notebook.version or version_answer(page, "/api/version")
        loaded = least(whole(field(model, "context_length")) for model in items(field(page.data, "models")))
        for figure in (POOL, LARGEST):
            notebook.put_of(page, figure, loaded, "models[].context_length, the least")
    hits = material.hits
    version = hits.latest("version")
    if version is not None:
        notebook.version = notebook.version or version.groups["v"]
    for figure in (ADVERTISED, CONTEXT):
        put_smallest(notebook, hits, "declared", figure, read=whole_text)
    for name in ("loaded", "loaded_on_cpu", "column"):
        for figure in (POOL, LARGEST):
            put_smallest(notebook, hits, name, figure, read=whole_text)
    _compare_with_declared(notebook)
    if not notebook.has(POOL):
        notebook.note("no model is loaded, or this version does not say with which context: ask again later")
    return (notebook.done(),)


def _compare_with_declared(notebook: Notebook) -> None:
    """What is loaded is the context, unless the model declares a longer one: then it was lowered."""
    loaded, declared = notebook.figures.get(POOL), notebook.number(CONTEXT)
    if loaded is None:
        return
    notebook.put(CONTEXT, loaded.value, loaded.read_from)
    if declared is not None and isinstance(loaded.value, int) and loaded.value < declared:
        notebook.put("set.context_lowered", value=True, read_from=loaded.read_from)


READER = Reader(ENGINE, FORMS, owns, read)
