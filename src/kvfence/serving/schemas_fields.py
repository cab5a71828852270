"""The fields that the API knows but does not take plainly: refused by name, or taken without effect.

Rules it keeps:
- A field is one of: served (`schemas`), without effect, not supported, control, unknown. Only the first two
  may have a value; the others are a 400 that names the field and says which of the three it is.
- A field that is not supported may have the value that asks for nothing (`tools: []`), as clients send it.
- Control fields speak of pages, leases, transfers and ids. Those are drawn by the server (law 9).
- A field that is unknown is answered with the nearest known one.
"""

import difflib
from collections.abc import Collection, Mapping

from kvfence.serving.errors import ApiError, bad_field
from kvfence.serving.schemas_readers import describe

WITHOUT_EFFECT = frozenset({"user", "metadata", "store", "safety_identifier"})

# Field → the values that ask for nothing. `null` asks for nothing everywhere.
UNSUPPORTED: dict[str, tuple[object, ...]] = {
    "audio": (),
    "best_of": (1,),
    "echo": (False,),
    "function_call": ("none",),
    "functions": ([],),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "modalities": (["text"],),
    "moderation": (),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "prompt_cache_key": (),
    "prompt_cache_options": (),
    "prompt_cache_retention": (),
    "reasoning_effort": ("none",),
    "response_format": ({"type": "text"},),
    "service_tier": ("auto", "default"),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "verbosity": (),
    "web_search_options": (),
}

CONTROL_NAMES = frozenset(
    {
        "cache_salt",
        "data_parallel_rank",
        "decode_rank",
        "domain",
        "epoch",
        "incarnation",
        "input_ids",
        "kv_transfer_params",
        "ordinal",
        "request_id",
        "rid",
        "seal",
        "slot",
        "tenant",
        "to_finish",
    }
)
CONTROL_PREFIXES = (
    "block",
    "bootstrap",
    "disagg",
    "do_remote",
    "epoch_",
    "kv_",
    "lease",
    "manifest",
    "page",
    "prefill_",
    "remote_",
    "routed_dp",
    "transfer",
)


def is_control(name: str) -> bool:
    """Whether a field speaks of what only the server may decide."""
    plain = name.lower().replace("-", "_")
    return plain in CONTROL_NAMES or plain.startswith(CONTROL_PREFIXES)


def check_fields(body: Mapping[str, object], served: Collection[str], *, path: str = "") -> None:
    """Raise ApiError (400) for the first field that is neither served nor without effect."""
    for name, value in body.items():
        if name in served or (not path and name in WITHOUT_EFFECT):
            continue
        param = f"{path}{name}"
        if is_control(name):
            raise _control(param)
        if name in UNSUPPORTED:
            if value is None or _asks_for_nothing(value, UNSUPPORTED[name]):
                continue
            raise bad_field(
                param,
                "is not supported by this server. Leave it out.",
                code="unsupported_parameter",
            )
        raise _unknown(param, name, served)


def _asks_for_nothing(value: object, neutral: tuple[object, ...]) -> bool:
    # 1 == True in Python, and `echo: 0` is not `echo: false`.
    return any(type(value) is type(other) and value == other for other in neutral)


def _control(param: str) -> ApiError:
    return bad_field(
        param,
        "is a control field: requests, pages, leases and transfers are named by the server alone, never by "
        "a client. Leave it out.",
        code="control_field",
    )


def _unknown(param: str, name: str, served: Collection[str]) -> ApiError:
    near = difflib.get_close_matches(name[:64], [*served, *sorted(WITHOUT_EFFECT)], n=1, cutoff=0.7)
    hint = f" Did you mean `{near[0]}`?" if near else " Leave it out."
    shown = param if len(param) <= 100 else f"{param[:100]}…"
    if not shown.isprintable():
        shown = describe(name)
    return ApiError(400, f"`{shown}` is not a known field.{hint}", param=shown, code="unknown_parameter")
