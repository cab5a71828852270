"""LMDeploy (TurboMind): its log, models, metrics.

What misleads, and what this reader does about it:
- Blocks are tokens only together with the tokens of a block, which newer logs do not print.
- The engine lowers `session_len` to what the blocks hold: what it lowered it to is the pool and the limit.
"""

from kvfence.audit.log_scan import Hits
from kvfence.audit.page import Page, least, whole, whole_text
from kvfence.audit.readers.interface import Reader, form, is_owned_by, model_cards, put_smallest, smallest
from kvfence.audit.reading import ADVERTISED, CONTEXT, LARGEST, PAGE, POOL, Material, Notebook, Reading

ENGINE = "lmdeploy"
FORMS = (
    form("tagged", "[TM][", r"\[TM\]\[(?:INFO|WARNING|ERROR|FATAL|DEBUG)\]"),
    form("blocks", "max_block_count", r"\[BlockManager\] max_block_count = (?P<n>\d+)"),
    form(
        "block", "cache_block_seq_len", r"`?cache_block_seq_len`?(?: is not set, default to| =) *(?P<n>\d+)"
    ),
    form("session", "session_len = ", r"(?<![\w])session_len = (?P<n>\d+)"),
    form(
        "lowered",
        "`session_len` truncated",
        r"No enough blocks for `session_len` \((?P<c>\d+)\), `session_len` truncated to (?P<n>\d+)",
    ),
)


def owns(page: Page) -> bool:
    """Models by their owner, metrics by their prefix."""
    return is_owned_by(page, ENGINE) or page.has_metrics_of("lmdeploy:")


def read(material: Material) -> tuple[Reading, ...]:
    """One reading."""
    notebook = Notebook(ENGINE)
    for page in material.pages:
        if is_owned_by(page, ENGINE):
            advertised = least(whole(card.get("max_model_len")) for card in model_cards(page))
            notebook.put_of(page, ADVERTISED, advertised, "max_model_len")
    _read_log(notebook, material.hits)
    return (notebook.done(),)


def _read_log(notebook: Notebook, hits: Hits) -> None:
    put_smallest(notebook, hits, "block", PAGE, read=whole_text)
    blocks, size = smallest(hits.last("blocks"), "n", whole_text), notebook.number(PAGE)
    if blocks is not None and size is not None:
        notebook.put_line(hits.log, blocks[0], POOL, blocks[1] * size)
    lowered = smallest(hits.last("lowered"), "n", whole_text)
    if lowered is not None:
        hit, tokens = lowered
        notebook.put_line(hits.log, hit, POOL, tokens)
        notebook.put_line(hits.log, hit, CONTEXT, whole_text(hit.groups["c"]))
        notebook.put_line(hits.log, hit, LARGEST, tokens)
        notebook.put_line(hits.log, hit, "set.context_lowered", value=True)
    elif blocks is not None and size is None:
        notebook.note(
            f"the log counts {blocks[1]:,} blocks and does not say how many tokens a block has: the pool is "
            "not known"
        )
    put_smallest(notebook, hits, "session", CONTEXT, read=whole_text)


READER = Reader(ENGINE, FORMS, owns, read)
