"""Which engine answers, by what it says of itself: a name for reports, never a reason to skip a test.

Rules it keeps: only what was read anyway, and one address at most, is looked at; who is not recognised has no
name.
"""

from collections.abc import Mapping

from kvfence.check.read_reply_parts import as_text
from kvfence.check.reply import Reply

_OWNERS = {
    "kvfence": "kvfence",
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "lmdeploy": "lmdeploy",
    "library": "ollama",
    "tensorrt_llm": "tensorrt-llm",
    "openvino": "openvino",
}
# A header's name, and what its value begins with where the name alone does not tell.
_HEADERS: tuple[tuple[str, str, str], ...] = (
    ("server", "llama.cpp", "llama.cpp"),
    ("x-compute-type", "", "tgi"),
    ("x-litellm-version", "", "litellm"),
    ("x-portkey-trace-id", "", "portkey"),
    ("apim-request-id", "", "azure"),
    ("x-ms-region", "", "azure"),
    ("x-groq-region", "", "groq"),
    ("openai-processing-ms", "", "openai"),
)


def engine_of(entry: Mapping[str, object], *replies: Reply) -> tuple[str, str] | None:
    """Return (engine, where it was read), or None."""
    owner = as_text(entry.get("owned_by"))
    if owner is not None and owner.lower() in _OWNERS:
        return _OWNERS[owner.lower()], f"`owned_by` {owner!r} in the list of models"
    for reply in replies:
        told = {name.lower(): value.lower() for name, value in reply.headers}
        for name, begins, engine in _HEADERS:
            if name in told and told[name].startswith(begins):
                return engine, f"the header {name}"
    return None
