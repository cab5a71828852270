"""How long a request may be, as a server tells it: in its list of models, or in the words of a refusal.

Rules it keeps:
- What is advertised is what counts here, however wrong it is: `boundary` tests whether it is true.
- A number is taken from a sentence only where the sentence is known to name the limit at that place; the form
  is said with it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from kvfence.check.read_reply_parts import as_count, as_object

TOKENS_MAX = 1 << 40
# What the members of a model's entry are called that say how long a request may be; the first one counts.
_FIELDS = (
    "max_model_len",  # vLLM, SGLang, kvfence
    "context_window",  # Groq and others
    "context_length",  # OpenRouter, Together, Mistral's own server
    "max_context_length",  # LM Studio, Mistral
    "max_context_window",
    "max_input_tokens",
    "max_total_tokens",
    "max_sequence_length",
)


@unique
class Bounds(StrEnum):
    """What a limit is a limit of."""

    REQUEST = "prompt and answer together"
    PROMPT = "the prompt"
    ANSWER = "the answer"


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of tokens, what it bounds, and whose form of words it was."""

    tokens: int
    bounds: Bounds
    form: str


_N = r"([\d,_]+)"
_FORMS: tuple[tuple[str, Bounds, str], ...] = (
    ("kvfence", Bounds.REQUEST, rf"serves at most {_N} tokens a request"),
    ("SGLang", Bounds.PROMPT, rf"exceeds the maximum allowed length \({_N} tokens\)"),
    ("SGLang", Bounds.REQUEST, rf"longer than the model's context length \({_N} tokens\)"),
    ("SGLang", Bounds.REQUEST, rf"exceeds the model's maximum context length of {_N} tokens"),
    ("llama.cpp", Bounds.REQUEST, rf"exceeds the available context size \({_N} tokens\)"),
    ("llama.cpp", Bounds.REQUEST, rf'"n_ctx"\s*:\s*{_N}'),
    ("TGI", Bounds.REQUEST, rf"`?inputs`? tokens \+ `?max_new_tokens`? must be <= {_N}"),
    ("TGI", Bounds.PROMPT, rf"`?inputs`? must have less than {_N} tokens"),
    ("OpenAI", Bounds.ANSWER, rf"supports at most {_N} completion tokens"),
    ("OpenAI", Bounds.REQUEST, rf"maximum context length (?:is|of) {_N}"),
    ("Mistral", Bounds.REQUEST, rf"model with {_N} maximum context length"),
    ("Anthropic", Bounds.PROMPT, rf"prompt is too long: [\d,]+ tokens > {_N} maximum"),
    ("Anthropic", Bounds.ANSWER, rf"max_tokens: [\d,]+ > {_N}"),
    ("Google", Bounds.PROMPT, rf"exceeds the maximum number of tokens allowed \(?{_N}"),
    (
        "TensorRT-LLM",
        Bounds.REQUEST,
        rf"(?:max_seq_len|max_num_tokens|max sequence length)\W+(?:of |is )?\(?{_N}",
    ),
    ("an unknown server", Bounds.REQUEST, rf"(?:context (?:length|window|size)|max_model_len)\D{{0,20}}{_N}"),
)
_COMPILED = tuple((form, bounds, re.compile(words, re.IGNORECASE)) for form, bounds, words in _FORMS)


def limit_in(words: str) -> Limit | None:
    """Return the limit that a refusal names, None where it names none in a form that is known."""
    for form, bounds, pattern in _COMPILED:
        found = pattern.search(words)
        if found is None:
            continue
        digits = re.sub(r"\D", "", found.group(1))
        tokens = int(digits) if 0 < len(digits) < 15 else 0
        if 0 < tokens <= TOKENS_MAX:
            return Limit(tokens, bounds, form)
    return None


def advertised_in(entry: Mapping[str, object]) -> tuple[int, str] | None:
    """Return the context that a model's entry names, and the member that names it."""
    for name, holder in _members(entry):
        tokens = as_count(holder.get(name.rpartition(".")[2]))
        if tokens:
            return tokens, name
    return None


def _members(entry: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    yield from ((name, entry) for name in _FIELDS)
    # llama.cpp: what the server was started with, per slot; the length of the training is no limit.
    yield "meta.n_ctx", as_object(entry.get("meta"))
    yield "top_provider.context_length", as_object(entry.get("top_provider"))
    yield "limits.max_context_length", as_object(entry.get("limits"))
    yield (
        "capabilities.limits.max_context_window_tokens",
        as_object(as_object(entry.get("capabilities")).get("limits")),
    )
