"""SGLang's log: its forms, and what they mean for pool, context and settings.

Rules it keeps: those of `sglang`. Of two figures that bound a request the one that the engine says last, and
at the end of its start, is believed. A rank says its pool once a start, and all ranks have one context: where
that does not hold, several servers wrote the log, and the worst of what they say is taken, as no pass.
"""

from kvfence.audit.log_scan import Hits
from kvfence.audit.page import whole_text
from kvfence.audit.readers.interface import SEVERAL_SERVERS, endings, form, put_smallest, smallest
from kvfence.audit.reading import CONTEXT, DRAFT_POOL, LARGEST, PAGE, POOL, SWA_POOL, Notebook

ROLES = {"prefill": "prefill", "decode": "decode", "null": "server", "none": "server", "unified": "server"}

FORMS = (
    form("args", "server_args=", r"server_args=", is_start=True),
    form("port", "server_args=", r"server_args=.*(?<!\w)port=(?P<port>\d+)", is_mark=False, is_identity=True),
    form("mode", "disaggregation_mode=", r"disaggregation_mode=['\"]?(?P<mode>[a-z]+)", is_identity=True),
    form("final", "max_total_num_tokens=", r"max_total_num_tokens=(?P<n>\d+)"),
    form(
        "both",
        "max_total_num_tokens=",
        r"max_total_num_tokens=(?P<n>\d+), .*\bcontext_len=(?P<c>\d+)",
        is_mark=False,
    ),
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
    form("speculative", "speculative_algorithm=", r"speculative_algorithm=['\"](?P<v>\w+)"),
    form("page", "page_size=", r"(?<![\w])page_size=(?P<n>\d+)", is_mark=False),
    form("checksum", "enable_kv_checksum=", r"disaggregation_enable_kv_checksum=(?P<v>True|False)"),
    form("canary", "kv_canary=", r"kv_canary=['\"]?(?P<v>none|log|raise)\b"),
    form("truncate", "allow_auto_truncate=", r"allow_auto_truncate=(?P<v>True|False)"),
    form("backend", "transfer_backend=", r"disaggregation_transfer_backend=['\"](?P<v>\w+)"),
    *endings(),
)


def read_log(notebook: Notebook, hits: Hits) -> None:
    """Write down what the lines of a log say, beside what was read already."""
    _doubt_several(notebook, hits)
    put_smallest(notebook, hits, "over_pool", LARGEST, read=whole_text)
    put_smallest(notebook, hits, "final", POOL, read=whole_text)
    put_smallest(notebook, hits, "warning", POOL, read=whole_text)
    put_smallest(notebook, hits, "hybrid", SWA_POOL, group="swa", read=whole_text)
    put_smallest(notebook, hits, "hybrid", POOL, read=whole_text)
    put_smallest(notebook, hits, "dsv4", POOL, read=whole_text)
    _read_allocated(notebook, hits)
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
    for name, setting in (
        ("canary", "kv_canary"),
        ("backend", "transfer_backend"),
        ("speculative", "speculative"),
    ):
        hit = hits.latest(name)
        if hit is not None:
            notebook.put_line(hits.log, hit, f"set.{setting}", hit.groups["v"])
    if hits.has("dsv4") and notebook.role == "prefill" and not notebook.has(LARGEST):
        notebook.note(
            "a DeepSeek V4 prefill node may be limited by its sliding-window pool, a tenth of the full one, "
            "which this log does not print: ask /server_info for max_req_input_len"
        )


def _doubt_several(notebook: Notebook, hits: Hits) -> None:
    """Where more than one server wrote these lines, take the worst pair that one of them says by itself."""
    if notebook.has(LARGEST) or (notebook.has(POOL) and notebook.has(CONTEXT)):
        return  # the running server has said it all
    contexts = {hit.groups["n"] for hit in hits.every("context")}
    if len(hits.every("final")) == len(hits.last("final")) and len(contexts) <= 1:
        return
    notebook.doubt = SEVERAL_SERVERS
    pairs = [
        (pool / context, hit, pool, context)
        for hit in hits.every("both")
        if (pool := whole_text(hit.groups["n"])) is not None
        and (context := whole_text(hit.groups["c"])) is not None
    ]
    pools = smallest(hits.every("final"), "n", whole_text)
    worst = min(pairs, key=lambda pair: pair[0], default=None)
    if worst is not None and worst[0] < 1:
        notebook.put_line(hits.log, worst[1], POOL, worst[2])
        notebook.put_line(hits.log, worst[1], CONTEXT, worst[3])
    elif pools is not None:
        notebook.put_line(hits.log, pools[0], POOL, pools[1])


def _read_allocated(notebook: Notebook, hits: Hits) -> None:
    """Take these lines only where each rank printed one size, which then is the pool."""
    sizes = hits.every("allocated")
    if not sizes:
        return
    if notebook.has(POOL):
        _read_draft_pool(notebook, hits)
        return
    if len(sizes) > len(hits.last("allocated")):
        notebook.note(
            "the log prints the sizes of several pools and no max_total_num_tokens: which of them bounds a "
            "request cannot be told"
        )
        return
    found = smallest(sizes, "n", whole_text)
    if found is not None:
        notebook.put_line(hits.log, found[0], POOL, found[1])


def _read_draft_pool(notebook: Notebook, hits: Hits) -> None:
    """With speculative decoding, a size that is no other pool's is the draft model's."""
    known = {notebook.number(POOL), notebook.number(SWA_POOL)}
    is_speculative = hits.has("speculative") or notebook.done().value("set.speculative") is not None
    others = [hit for hit in hits.every("allocated") if whole_text(hit.groups["n"]) not in known]
    found = smallest(others, "n", whole_text) if is_speculative else None
    if found is not None:
        notebook.put_line(hits.log, found[0], DRAFT_POOL, found[1])
